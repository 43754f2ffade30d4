package redisproc

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"remit/test/suite"
)

// appended spells commands as Redis appends them, one in each line.
func appended(commands string) string {
	var file strings.Builder
	for line := range strings.Lines(commands) {
		words := strings.Fields(line)
		file.WriteString("*" + strconv.Itoa(len(words)) + "\r\n")
		for _, word := range words {
			file.WriteString("$" + strconv.Itoa(len(word)) + "\r\n" + word + "\r\n")
		}
	}
	return file.String()
}

func TestTornTransactionIsFoundWhereverItEnds(t *testing.T) {
	t.Parallel()
	before := appended("SELECT 0\nSET before 1\nMULTI\nSET a 1\nSET b 1\nEXEC\nSET after 1\n")
	transaction := appended("MULTI\nHSET session n 2 v 116\nSET outcome 1 PX 86400000\nEXEC\n")
	for end := range len(transaction) {
		begins, is := tornTransaction(strings.NewReader(before + transaction[:end]))
		if torn := end >= len(appended("MULTI\n")); is != torn || is && begins != int64(len(before)) {
			t.Errorf("after %q: %v at %d, want %v at %d", transaction[:end], is, begins, torn, len(before))
		}
	}
}

func TestOtherEndsAreLeftToRedis(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"nothing":                          "",
		"a whole transaction":              appended("MULTI\nSET a 1\nEXEC\n"),
		"in small letters":                 appended("multi\nSET a 1\nexec\n"),
		"a command after a transaction":    appended("MULTI\nSET a 1\nEXEC\nSET b 1\n"),
		"a torn command":                   appended("SET a 1\nSET b 1\n")[:40],
		"a value that is called MULTI":     appended("SET a MULTI\n"),
		"an annotation":                    "#TS:1628217470\r\n" + appended("SET a 1\n"),
		"a long name":                      appended(strings.Repeat("x", 2*aofBuffer) + "\n"),
		"other bytes in a transaction":     appended("MULTI\nSET a 1\n") + "\xff\x00\xff\x00\r\n",
		"a transaction that is damaged":    appended("MULTI\n") + "*3\r\n$3\r\nSET\r\n:1\r\n",
		"a word of a negative length":      appended("MULTI\n") + "*1\r\n$-1\r\n",
		"an endless line":                  appended("MULTI\n") + strings.Repeat("*", 2*aofBuffer),
		"an empty line in a transaction":   appended("MULTI\n") + "\r\n\r\n",
		"a length that no int can be":      appended("MULTI\n") + "*1\r\n$9223372036854775807\r\nx\r\n",
		"a number of words that no int is": appended("MULTI\n") + "*92233720368547758070\r\n",
	} {
		if begins, is := tornTransaction(strings.NewReader(file)); is {
			t.Errorf("%s: a transaction is torn at %d", name, begins)
		}
	}
}

// bothScript has two writes, so that Redis appends them as a transaction.
const bothScript = "redis.call('SET', KEYS[1], 1) redis.call('SET', KEYS[2], 1) return 1"

// Each end of the file is one that a power failure can leave.
func TestTornScriptNeitherReturnsNorTakesOthersAlong(t *testing.T) {
	t.Parallel()
	for name, word := range map[string]string{"first write": "torn1", "second write": "torn2", "end": "EXEC"} {
		for next, write := range map[string]func(*redis.Client) error{
			"command": func(c *redis.Client) error { return c.Set(t.Context(), "kept", 1, 0).Err() },
			"script":  func(c *redis.Client) error { return c.Eval(t.Context(), bothScript, []string{"kept", "kept2"}).Err() },
		} {
			t.Run("torn in its "+name+" before a "+next, func(t *testing.T) {
				t.Parallel()
				cfg := Config{Dir: t.TempDir(), Fsync: "always"}
				crashAfter(t, start(t, cfg), func(c *redis.Client) error {
					return c.Eval(t.Context(), bothScript, []string{"torn1", "torn2"}).Err()
				})
				tear(t, cfg.Dir, word)
				crashAfter(t, start(t, cfg), write)
				client := connect(t, start(t, cfg))
				suite.Eventually(t, "the data is loaded", func() bool { return client.DBSize(t.Context()).Err() == nil })
				if n := client.Exists(t.Context(), "kept").Val(); n != 1 {
					t.Error("what was acknowledged after the tear is lost")
				}
				if n := client.Exists(t.Context(), "torn1", "torn2").Val(); n != 0 {
					t.Errorf("%d writes of the torn script have returned", n)
				}
			})
		}
	}
}

// crashAfter kills a server that has acknowledged a write.
func crashAfter(t *testing.T, s *Server, write func(*redis.Client) error) {
	t.Helper()
	client := connect(t, s)
	suite.Eventually(t, "the data is loaded", func() bool { return client.DBSize(t.Context()).Err() == nil })
	must(0, write(client))(t)
	must(0, syscall.Kill(s.PID(), syscall.SIGKILL))(t)
	<-s.Done()
}

// tear cuts off the end of what was appended, from the second byte of the last word of that kind on.
func tear(t *testing.T, dir, word string) {
	t.Helper()
	path := must(appendedFile(dir))(t)
	file := must(os.ReadFile(path))(t)
	at := bytes.LastIndex(file, []byte(word))
	if at < 0 {
		t.Fatalf("no %s in %q", word, file)
	}
	must(0, os.Truncate(path, int64(at+1)))(t)
}

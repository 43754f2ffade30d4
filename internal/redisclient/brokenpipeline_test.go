package redisclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"remit/test/redistest"
)

// breakingServer runs scripts: it answers the first calls of each connection as configured, runs some more without an answer,
// and then closes the connection.
type breakingServer struct {
	answers []string
	silent  int

	mu  sync.Mutex
	ran map[string]int // how often, by what calls have in their arguments
}

// What it answers. Whatever is an error has not run.
const (
	done      = "*1\r\n$2\r\nok\r\n"
	noSuch    = "-NOSCRIPT No matching script.\r\n"
	isLoading = "-LOADING Redis is loading the dataset in memory\r\n"
)

func (s *breakingServer) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for scripts := 0; scripts < len(s.answers)+s.silent; {
		words, err := redistest.ReadCommand(in)
		if err != nil {
			return
		}
		answer := "-ERR unknown command\r\n"
		if strings.HasPrefix(strings.ToLower(words[0]), "eval") {
			answer = ""
			if scripts < len(s.answers) {
				answer = s.answers[scripts]
			}
			scripts++
		}
		if !strings.HasPrefix(answer, "-") {
			s.run(words)
		}
		_, _ = io.WriteString(conn, answer)
	}
}

func (s *breakingServer) run(words []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, word := range words {
		if id, _, is := strings.Cut(word, " padded"); is {
			s.ran[id]++
		}
	}
}

// However far a server comes with a pipeline before it is gone, also when the pipeline is longer than what the client writes
// at once: a call that ran is never refused, and never sent again.
func TestACallThatRanIsNeverRefusedWhereverItsPipelineBreaks(t *testing.T) {
	t.Parallel()
	const calls = 3 * maxMerged
	plain, merging := unregistered("return {'ok'}"), unregistered("return {'ok'}")
	merging.MergeAs("return {}", 1, 1)
	together := "*" + strconv.Itoa(maxMerged) + "\r\n" + strings.Repeat(done, maxMerged)
	for name, tc := range map[string]struct {
		script  *Script
		answers []string
	}{
		"by themselves":            {plain, []string{done, done}},
		"by themselves, unknown":   {plain, []string{noSuch, done}},
		"by themselves, too early": {plain, []string{isLoading, done, isLoading}},
		"merged":                   {merging, []string{together}},
		"merged, unknown":          {merging, []string{noSuch, together}},
		"merged, too early":        {merging, []string{isLoading, together}},
	} {
		for _, size := range []int{1, 8 << 10} {
			for silent := range 2 {
				t.Run(fmt.Sprintf("%s, %d bytes each, %d unanswered", name, size, silent), func(t *testing.T) {
					t.Parallel()
					s := &breakingServer{answers: tc.answers, silent: silent, ran: map[string]int{}}
					c := openClient(t, Config{}, "redis://"+redistest.Serve(t, s.serve))
					judgeCalls(t, s, callsAtOnce(t, c, tc.script, calls, size))
				})
			}
		}
	}
}

// callsAtOnce makes calls that share a pipeline, each with its number in its argument, and returns their errors.
func callsAtOnce(t *testing.T, c *Client, sc *Script, count, size int) []error {
	t.Helper()
	key := newCounter(c).key
	errs, calls := make([]error, count), make([]func(context.Context), count)
	for i := range calls {
		calls[i] = func(ctx context.Context) {
			_, errs[i] = c.Run(ctx, Flow{}, sc, []string{key}, strconv.Itoa(i)+" padded"+strings.Repeat(".", size))
		}
	}
	atOnce(t, c, key, calls...)
	return errs
}

func judgeCalls(t *testing.T, s *breakingServer, errs []error) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ran) == 0 {
		t.Error("no call ran")
	}
	for id, err := range errs {
		switch ran := s.ran[strconv.Itoa(id)]; {
		case ran > 1:
			t.Errorf("call %d ran %d times", id, ran)
		case ran == 1 && errors.Is(err, ErrUnavailable):
			t.Errorf("call %d ran, and is refused: %v", id, err)
		case ran == 0 && err == nil:
			t.Errorf("call %d is acknowledged, and has not run", id)
		}
	}
}

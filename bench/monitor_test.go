package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/lua"
	"remit/test/suite"
)

const monitorLimit = 5 * time.Second

// scriptOf returns the only EVALSHA that the service sends for a call, with other ids (see twin). The floors repeat it, so they
// follow changes of the service.
func (s *service) scriptOf(tb testing.TB, a agent, next turns) []string {
	tb.Helper()
	return s.twin(tb, s.scriptAsSent(tb, next), s.org, a.id, a.session)
}

func (s *service) scriptAsSent(tb testing.TB, next turns) []string {
	tb.Helper()
	ask := connect(tb, s.addr, 1, func() turns { return next })[0]
	do := func() { noError(tb, ask.take()) }
	do() // loads the script into Redis
	commands := s.monitor(tb, do)
	if len(commands) != 1 {
		tb.Fatalf("a call sends %d scripts, want 1: %q", len(commands), commands)
	}
	return commands[0]
}

// inBackground are the scripts that the service sends whatever is asked of it: for the usage of organizations, feeds, webhooks and what is due.
var inBackground = hashesOf("kernel/note_usage", "records/enter_feed", "records/note_feed", "records/mark_agents", "records/lead_feed", "records/take_agents", "records/finish_look",
	"records/append_events", "records/trim_trail", "records/read_feed", "records/drop_feed", "webhooks/claim_webhooks", "webhooks/list_due_webhooks", "records/fold_usage",
	"records/note_due", "records/claim_due", "records/take_due", "records/finish_due")

func hashesOf(scripts ...string) map[string]bool {
	hashes := map[string]bool{}
	for _, name := range scripts {
		hashes[redis.NewScript(lua.Source(name)).Hash()] = true
	}
	return hashes
}

// monitor returns the EVALSHA commands that reach Redis while do runs, without those of inBackground.
func (s *service) monitor(tb testing.TB, do func()) (commands [][]string) {
	tb.Helper()
	conn := must(net.Dial(s.redis.Options().Network, s.redis.Options().Addr))(tb)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(monitorLimit))
	lines := bufio.NewReader(conn)
	must(fmt.Fprint(conn, "MONITOR\r\n"))(tb)
	must(lines.ReadString('\n'))(tb)
	do()
	const end = "end of commands"
	noError(tb, s.redis.Echo(context.Background(), end).Err())
	for {
		words := monitored(must(lines.ReadString('\n'))(tb))
		switch {
		case len(words) == 2 && words[1] == end:
			return commands
		case len(words) > 1 && strings.EqualFold(words[0], "evalsha") && !inBackground[words[1]]:
			commands = append(commands, words)
		}
	}
}

// monitored parses a line of MONITOR: time, client, and the quoted arguments, with Go's escapes.
func monitored(line string) (words []string) {
	_, rest, _ := strings.Cut(line, "] ")
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return nil
		}
		words, rest = append(words, word), rest[len(quoted):]
	}
	return words
}

// twin copies the keys of a script call to keys with other ids, and returns the call with these ids, so that the floors do not
// change the data of the path. The ids contain no NUL byte, because redis-benchmark gets them as process arguments.
func (s *service) twin(tb testing.TB, command []string, ids ...uuid.UUID) []string {
	tb.Helper()
	var pairs []string
	for _, id := range ids {
		other := uuid.New()
		copy(other[:6], id[:6]) // the time of creation, from which a family's lifetime counts
		for i := range other {
			other[i] = max(other[i], 1)
		}
		pairs = append(pairs, id.String(), other.String(), string(id[:]), string(other[:]))
	}
	rename := strings.NewReplacer(pairs...)
	var renamed []string
	for _, word := range command {
		word = rename.Replace(word)
		if strings.HasPrefix(word, "family:") { // of the access token; Redis has no key for it unless it is revoked
			word = strings.ReplaceAll(word, "\x00", "\x01")
		}
		renamed = append(renamed, word)
	}
	keys := must(strconv.Atoi(command[2]))(tb)
	for i := range keys {
		s.copyKey(tb, command[3+i], renamed[3+i], rename)
	}
	return renamed
}

func (s *service) copyKey(tb testing.TB, from, to string, rename *strings.Replacer) {
	tb.Helper()
	ctx := context.Background()
	if from == to {
		return
	}
	noError(tb, s.redis.Copy(ctx, from, to, 0, true).Err())
	if s.redis.Type(ctx, to).Val() != "hash" {
		return
	}
	fields := must(s.redis.HGetAll(ctx, to).Result())(tb)
	for field, value := range fields {
		field := rename.Replace(field) // a session's field with its day's end is named as the agent
		noError(tb, s.redis.HSet(ctx, to, field, rename.Replace(value)).Err())
	}
}

// TestScriptsInTheBackgroundAreNoCallsOwn: the feed is led and the event numbered while the monitor listens.
func TestScriptsInTheBackgroundAreNoCallsOwn(t *testing.T) {
	s := startProgram(t)
	a := s.newAgent(t)
	sent := s.monitor(t, func() {
		session := s.ask(t, "/sessions", a.sessionBody()).ID
		suite.Eventually(t, "the feed has the session", func() bool {
			_, events := s.send(t, http.MethodGet, "/v1/events?limit=100", "")
			return bytes.Contains(events, []byte(session.String()))
		})
	})
	if len(sent) != 2 {
		t.Errorf("%d scripts, want the two that reserve and create a session: %q", len(sent), sent)
	}
}

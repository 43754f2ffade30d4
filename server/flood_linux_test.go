package server

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/internal/token"
)

// All of 127.0.0.0/8 is this machine, on Linux: two clients with an address each.
func TestAFloodFromOneAddressCostsRedisNothingAndOthersNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a real Redis")
	}
	private := must(redisproc.Start(t.Context(), redisproc.Config{}))(t)
	t.Cleanup(func() { _ = private.Stop() })
	s := runServer(t, private.URL(), Config{Limits: Limits{FailedAuthPerMinute: 100}})
	flooding, calm := from(t, "127.0.0.2"), from(t, "127.0.0.3")
	agent, secret := s.newAgent(t, calm)
	commands := commandCounter(t, private.URL())

	before := commands()
	for range 100 {
		s.exchange(t, flooding, agent, token.NewAgentSecret()).is(t, 401, "invalid_credentials")
		s.refresh(t, flooding, "rmr_x").is(t, 401, "invalid_refresh_token")
	}
	if cost := commands() - before; cost < 100 {
		t.Fatalf("100 wrong secrets cost %d commands: the test proves nothing", cost)
	}
	before = commands()
	for range 50 {
		s.exchange(t, flooding, agent, token.NewAgentSecret()).is(t, 429, "rate_limited")
		s.exchange(t, flooding, agent, secret).is(t, 429, "rate_limited")
		s.refresh(t, flooding, "rmr_x").is(t, 429, "rate_limited")
	}
	if cost := commands() - before; cost != 0 {
		t.Errorf("150 refused requests cost %d commands, want none", cost)
	}
	pair := s.exchange(t, calm, agent, secret).is(t, 200, "")
	if left := pair.remaining(t, "failed-auth"); left != 100 {
		t.Errorf("the other address has %d left, want 100", left)
	}
	s.refresh(t, calm, pair.text(t, "refresh_token")).is(t, 200, "")
}

var commandCalls = regexp.MustCompile(`(?m)^cmdstat_([^:]+):calls=(\d+),`)

// commandCounter returns a function that returns how many commands Redis has run, except greetings and its own.
func commandCounter(t *testing.T, url string) func() int {
	t.Helper()
	options := must(redis.ParseURL(url))(t)
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return func() int {
		t.Helper()
		stats := must(client.Info(t.Context(), "commandstats").Result())(t)
		total := 0
		for _, stat := range commandCalls.FindAllStringSubmatch(stats, -1) {
			if stat[1] == "info" || stat[1] == "hello" || stat[1] == "blpop" || strings.HasPrefix(stat[1], "client|") {
				continue
			}
			calls, _ := strconv.Atoi(stat[2])
			total += calls
		}
		return total
	}
}

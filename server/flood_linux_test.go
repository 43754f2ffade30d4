package server

import (
	"strings"
	"testing"

	"remit/internal/redisproc"
	"remit/internal/token"
	"remit/test/redistest"
)

// All of 127.0.0.0/8 is this machine, on Linux: two clients with an address each.
func TestAFloodFromOneAddressCostsRedisNothingAndOthersNothing(t *testing.T) {
	t.Parallel()
	private := redistest.StartRedis(t, redisproc.Config{})
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
	wantEqual(t, "commands of 150 refused requests", commands()-before, 0)
	pair := s.exchange(t, calm, agent, secret).is(t, 200, "")
	wantEqual(t, "failures left to the other address", pair.remaining(t, "failed-auth"), 100)
	s.refresh(t, calm, pair.text(t, "refresh_token")).is(t, 200, "")
}

// commandCounter returns a function that returns how many commands Redis has run, except greetings and its own.
func commandCounter(t *testing.T, url string) func() int {
	t.Helper()
	client := redistest.PlainClient(t, url)
	return func() (total int) {
		t.Helper()
		for command, calls := range redistest.CommandsRun(t, client, nil) {
			if !strings.HasPrefix(command, "client|") {
				total += calls
			}
		}
		return total
	}
}

package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"remit/client"
)

func newAgent(t *testing.T, react func(n int, r seen) reaction) (*client.Agent, *fake) {
	t.Helper()
	f := &fake{react: react}
	return newClient(t, f, client.Options{}).Agent("a1", "rms_secret"), f
}

func token(t *testing.T, a *client.Agent) string {
	t.Helper()
	return must(a.Token(t.Context()))(t)
}

func TestACancelledWaiterDoesNotCancelTheRenewal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		agent, f := newAgent(t, func(n int, _ seen) reaction {
			slow := pair(n)
			slow.delay = time.Second
			return slow
		})
		began := time.Now()
		first, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := agent.Token(first); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the one that leaves: %v", err)
			}
			if waited := time.Since(began); waited != 10*time.Millisecond {
				t.Errorf("it left after %s", waited)
			}
		})
		synctest.Wait()
		group.Go(func() {
			if access, err := agent.Token(t.Context()); access != "access-1" || err != nil {
				t.Errorf("the one that stays: %q, %v", access, err)
			}
		})
		group.Wait()
		if n := f.count(exchangePath); n != 1 {
			t.Errorf("%d exchanges", n)
		}
	})
}

// A token is renewed between 75 and 90 % of its lifetime, while calls continue with the current one.
func TestTokensAreRenewedEarly(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		agent, f := newAgent(t, issues(nil))
		token(t, agent)
		time.Sleep(2699 * time.Second)
		if access := token(t, agent); access != "access-1" || f.count(refreshPath) != 0 {
			t.Errorf("before 75 %%: %s, %d refreshes", access, f.count(refreshPath))
		}
		time.Sleep(542 * time.Second)
		if access := token(t, agent); access != "access-1" {
			t.Errorf("while it is renewed: %s", access)
		}
		synctest.Wait()
		if access := token(t, agent); access != "access-2" || f.count(refreshPath) != 1 || f.count(exchangePath) != 1 {
			t.Errorf("after 90 %%: %s, %d refreshes, %d exchanges", access, f.count(refreshPath), f.count(exchangePath))
		}
		if body := f.to(refreshPath)[0].body; body != `{"refresh_token":"refresh-1"}` {
			t.Errorf("presented %s", body)
		}
		time.Sleep(3599 * time.Second) // the lifetime counts from the response on: the service's clock does not matter
		if access := token(t, agent); access != "access-3" {
			t.Errorf("a second before its end: %s", access)
		}
	})
}

func TestAFleetDoesNotRenewTogether(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := &fake{react: issues(nil)}
		remit := newClient(t, f, client.Options{})
		fleet := make([]*client.Agent, 200)
		for i := range fleet {
			fleet[i] = remit.Agent("a", "s")
			token(t, fleet[i])
		}
		time.Sleep(2700 * time.Second)
		most := 0
		for range 9 { // minutes from 75 to 90 %
			before := f.count(refreshPath)
			time.Sleep(time.Minute)
			for _, agent := range fleet {
				token(t, agent)
			}
			synctest.Wait()
			most = max(most, f.count(refreshPath)-before)
		}
		if n := f.count(refreshPath); n != 200 || most > 60 {
			t.Errorf("%d renewals, of which %d within one minute", n, most)
		}
	})
}

// The attempts of one renewal take up to 30 seconds. None of them presents the token after the service's grace time: it would look
// stolen.
func TestNoAttemptPresentsATokenTooLate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waits, sleeps time.Duration // of each refresh: until its answer is lost, and how long the machine sleeps meanwhile
		before        time.Duration // between a first renewal that fails and the one under test
		presented     int           // by then
	}{
		"waits":                    {waits: 9 * time.Second, before: 5 * time.Second, presented: 6},
		"sleeps in the renewal":    {sleeps: 20 * time.Second, presented: 3},
		"began just in time":       {waits: 9 * time.Second, before: 19 * time.Second, presented: 5},
		"slept before its renewal": {sleeps: 55 * time.Second, presented: 1},
		"again soon":               {before: 40 * time.Second, presented: 8},
		"again too late":           {before: 55 * time.Second, presented: 4},
	} {
		runInBubble(t, name, func(t *testing.T) {
			asleep := time.Duration(0)
			var moments []time.Time
			var exchanged time.Time // last
			now := func() time.Time { return time.Now().Round(0).Add(asleep) }
			agent, _ := newAgent(t, func(n int, r seen) reaction {
				if r.path != refreshPath {
					exchanged = now()
					return pair(n)
				}
				moments = append(moments, now())
				asleep += test.sleeps
				lost := fails(errReset)
				lost.delay = test.waits
				return lost
			})
			client.SetWallClock(agent, now)
			token(t, agent)
			for err := agent.Refresh(t.Context()); err != nil; err = agent.Refresh(t.Context()) {
				if !errors.Is(err, client.ErrUnavailable) {
					t.Error(err)
				}
				time.Sleep(test.before)
			}
			for _, moment := range moments {
				if after := moment.Sub(moments[0]); after > 50*time.Second {
					t.Errorf("presented %s after its first use", after)
				}
			}
			if after := exchanged.Sub(moments[0]); test.waits > 0 && after > 50*time.Second {
				t.Errorf("the last attempt ended %s after the token's first use", after)
			}
			if len(moments) != test.presented || token(t, agent) != "access-2" {
				t.Errorf("presented %d times, and there is %s", len(moments), token(t, agent))
			}
		})
	}
}

func TestARejectedRefreshFallsBackToTheSecretOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		agent, f := newAgent(t, func(n int, r seen) reaction {
			switch {
			case r.path == refreshPath:
				return refusal(401, "invalid_refresh_token")
			case n > 2:
				return refusal(401, "invalid_credentials")
			}
			return pair(n)
		})
		token(t, agent)
		noError(t, agent.Refresh(t.Context()))
		if r, x := f.count(refreshPath), f.count(exchangePath); r != 1 || x != 2 {
			t.Errorf("%d refreshes, %d exchanges", r, x)
		}
		err := agent.Refresh(t.Context())
		if !errors.Is(err, client.ErrUnauthorized) || f.count(exchangePath) != 3 {
			t.Errorf("refused altogether: %v after %d exchanges", err, f.count(exchangePath))
		}
	})
}

// While early renewals fail, calls continue with the current token, and renewals are spaced out.
func TestAFailedRenewalDoesNotStorm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		agent, f := newAgent(t, func(n int, r seen) reaction {
			if r.path == refreshPath {
				return refusal(500, "internal_error")
			}
			return pair(n)
		})
		token(t, agent)
		time.Sleep(3300 * time.Second)
		for range 1000 {
			if access := token(t, agent); access != "access-1" {
				t.Fatal(access)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := f.count(refreshPath); n < 1 || n > 3 {
			t.Errorf("%d refreshes within 10 seconds", n)
		}
	})
}

func TestARejectedAccessTokenIsReplacedOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		second reaction
		err    error
	}{
		"and works":        {ok(usageBody), nil},
		"and does not":     {refusal(401, "invalid_token"), client.ErrUnauthorized},
		"of a lone action": {fails(errReset), client.ErrOutcomeUnknown},
	} {
		runInBubble(t, name, func(t *testing.T) {
			f := &fake{react: issues(inTurn(refusal(401, "invalid_token"), test.second))}
			// Without keys, and with one attempt: neither is needed for it.
			remit := newClient(t, f, client.Options{NoIdempotencyKeys: true, MaxAttempts: 1})
			_, err := remit.Agent("a1", "s").Session("s1").Charge(t.Context(), client.Charge{})
			if !errors.Is(err, test.err) {
				t.Errorf("%v, want %v", err, test.err)
			}
			var used []string
			for _, r := range f.to(actionsPath) {
				used = append(used, r.header.Get("Authorization"))
			}
			if got := strings.Join(used, ","); got != "Bearer access-1,Bearer access-2" {
				t.Errorf("used %s", got)
			}
		})
	}
}

// Concurrent calls share the first exchange, and once their token is rejected, one renewal. Each request has its own proof.
func TestConcurrentCallsShareTheirTokens(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		react := issues(func(n int, r seen) reaction {
			if r.header.Get("Authorization") == "DPoP access-1" {
				return refusal(401, "invalid_token")
			}
			return withNonce(ok(usageBody), fmt.Sprint("n-", n))
		})
		f := &fake{react: func(n int, r seen) reaction {
			does := react(n, r)
			does.delay = 10 * time.Millisecond
			does.body = strings.Replace(does.body, `"bearer"`, `"DPoP"`, 1)
			return does
		}}
		agent := bound(t, f, generated(t, client.EdDSA))
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				if _, err := agent.Session("s1").Charge(t.Context(), client.Charge{}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		proofs := map[string]bool{}
		for _, r := range f.requests {
			proofs[r.header.Get("DPoP")] = true
		}
		if r, x := f.count(refreshPath), f.count(exchangePath); r != 1 || x != 1 || len(proofs) != len(f.requests) {
			t.Errorf("%d refreshes, %d exchanges, %d proofs of %d requests", r, x, len(proofs), len(f.requests))
		}
	})
}

// A token without a text or a lifetime is an error. A lifetime that would be negative as nanoseconds does not overflow.
func TestOnlyATokenWithALifetimeIsUsed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{}`: "", `{"access_token":"a","refresh_token":"r"}`: "", `{"refresh_token":"r","expires_in":5}`: "", `<html>`: "",
		`{"access_token":"a","refresh_token":"b","expires_in":9223372036854775807}`: "a",
		`{"access_token":"a","refresh_token":"b","expires_in":9223372037}`:          "a",
		`{"access_token":"a","refresh_token":"b","expires_in":9223372036}`:          "a",
	} {
		agent, f := newAgent(t, inTurn(ok(body)))
		for range 2 {
			if access, err := agent.Token(t.Context()); access != want || (err == nil) != (want != "") {
				t.Errorf("%s: %q, %v", body, access, err)
			}
		}
		if n := f.count(exchangePath); want != "" && n != 1 {
			t.Errorf("%s: %d exchanges", body, n)
		}
	}
}

package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remit/token"
)

// rotated is a server that has slept through a rotation of both its keys, and another that has not.
type rotated struct {
	awake, asleep runningServer
	client        *http.Client
	key           string // of the organization
	reads         atomic.Int32
	fails         atomic.Bool

	access, refresh string // by the new keys
}

func newRotated(t *testing.T) *rotated {
	t.Helper()
	r := &rotated{awake: runServer(t, "", Config{Limits: Limits{Off: true}}), client: from(t, "")}
	r.asleep = runServer(t, "redis://"+r.awake.redis.Addr(), Config{Limits: Limits{Off: true}})
	current := must(r.awake.keys())(t)
	r.asleep.FollowKeys(func(context.Context) (*token.Keyring, error) {
		r.reads.Add(1)
		if r.fails.Load() {
			return nil, errors.New("Redis cannot be reached")
		}
		return current, nil
	})
	w := r.awake.newWaiter(t)
	tokens := r.awake.exchange(t, r.client, w.agent, w.secret).is(t, 200, "")
	r.key, r.access, r.refresh = w.key, tokens.text(t, "access_token"), tokens.text(t, "refresh_token")
	return r
}

// requests present a token of the agent, by the new keys.
func (r *rotated) requests(t *testing.T) map[string]func() reply {
	bearer := []string{"Authorization", "Bearer " + r.access}
	return map[string]func() reply{
		"revoke": func() reply {
			return r.asleep.post(t, r.client, "/v1/auth/revoke", `{"refresh_token":"rmr_x"}`, bearer...)
		},
		"introspect":                 func() reply { return r.introspect(t, r.access) },
		"introspect a refresh token": func() reply { return r.introspect(t, r.refresh) },
		"refresh":                    func() reply { return r.asleep.refresh(t, r.client, r.refresh) },
	}
}

func (r *rotated) introspect(t *testing.T, text string) reply {
	t.Helper()
	return r.asleep.post(t, r.client, "/v1/auth/introspect", `{"token":"`+text+`"}`, "X-API-Key", r.key)
}

func TestGenuineTokensOfKeysThatAreNewHereAreTakenAfterOneRead(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		status int
		code   string
	}{
		"revoke":     {401, "invalid_refresh_token"}, // its caller is let through, and what it gives is none
		"introspect": {200, ""}, "introspect a refresh token": {200, ""}, "refresh": {200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRotated(t)
			answer := r.requests(t)[name]().is(t, want.status, want.code)
			if active, introspected := answer.fields["active"]; introspected && active != true {
				t.Errorf("active is %v", active)
			}
			if reads := r.reads.Load(); reads != 1 {
				t.Errorf("the keys were read %d times, want once", reads)
			}
		})
	}
}

func TestATokenOfAnUnknownKeyIsNotCalledInvalidWhenTheKeysCannotBeRead(t *testing.T) {
	t.Parallel()
	r := newRotated(t)
	r.fails.Store(true)
	for name, ask := range r.requests(t) {
		if got := ask(); got.status != 503 {
			t.Errorf("%s: %d %v", name, got.status, got.fields)
		}
	}
	r.fails.Store(false)
	if err := r.asleep.ReadKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.introspect(t, r.access).is(t, 200, "")
}

// Whoever invents names of keys must not have Redis read for each.
func TestInventedKeysAreReadForOnceASecond(t *testing.T) {
	t.Parallel()
	r := newRotated(t)
	forged := runServer(t, "", Config{}) // signs with keys that nobody else knows
	access := must(must(forged.keys())(t).SignAccess(token.Access{Issued: time.Now()}))(t)
	began := time.Now()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if _, err := r.asleep.verifyAccess(access); !errors.Is(err, token.ErrUnknownKey) {
					t.Errorf("a forged token: %v", err)
				}
			}
		})
	}
	all.Wait()
	if reads, most := r.reads.Load(), 1+int32(time.Since(began)/keyReadPause); reads < 1 || reads > most {
		t.Errorf("the keys were read %d times in %s, want %d at the most", reads, time.Since(began), most)
	}
}

func TestAnUnknownKeyIsInvalidAtOnceWhereKeysDoNotChange(t *testing.T) {
	t.Parallel()
	s := runServer(t, "", Config{})
	s.refresh(t, from(t, ""), "rmr_x").is(t, 401, "invalid_refresh_token")
	forged := must(someKeyring(t).SignAccess(token.Access{Issued: time.Now()}))(t)
	if _, err := s.verifyAccess(forged); !errors.Is(err, token.ErrUnknownKey) {
		t.Errorf("a forged token: %v", err)
	}
}

// A clock that stands still while the machine is suspended would make old keys look fresh.
func TestAgeGoesByTheClockThatCountsMore(t *testing.T) {
	t.Parallel()
	byWall := time.Now().Round(0).Add(-time.Hour)
	if got := age(byWall); got < time.Hour {
		t.Errorf("an hour ago by the wall clock is %s", got)
	}
	if got := age(time.Now()); got > time.Minute {
		t.Errorf("now is %s ago", got)
	}
}

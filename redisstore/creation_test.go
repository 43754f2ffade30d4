package redisstore

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// keyedCreation is a creation by API key with an idempotency key.
type keyedCreation struct {
	kind      string // of object, as the scripts are called
	replay    *script
	do        func(ctx context.Context, s *Store, idem *Idempotency) (any, uuid.UUID, error)
	claimOnly func(ctx context.Context, s *Store, idem *Idempotency, quota string) error // its first script
	ids       func(t *testing.T, s *Store) []uuid.UUID
}

func (w tenant) keyedCreations(s *Store) map[string]keyedCreation {
	n := func(idem *Idempotency) NewSession {
		return NewSession{Agent: w.agent.ID, MaxActions: 7, Lifetime: time.Hour, Metadata: `{"n":1}`, Idempotency: idem}
	}
	return map[string]keyedCreation{
		"an agent": {
			kind: "agent", replay: replayAgent.Keyed,
			do: func(ctx context.Context, s *Store, idem *Idempotency) (any, uuid.UUID, error) {
				a, err := s.CreateAgent(ctx, w.key, Agent{Name: "scout", Metadata: `{"n":1}`}, [32]byte{3}, idem)
				return a, a.ID, err
			},
			claimOnly: func(ctx context.Context, s *Store, idem *Idempotency, quota string) error {
				idem.Bounded = true
				id := kernel.IDIn(idem.Cell(string(w.key.Organization[:])))
				c := &creation{key: w.key, id: id, index: s.keys.OrganizationAgents(w.key.Organization), claim: claimAgent, idempotency: idem}
				return s.claimAndEnter(ctx, c, quota)
			},
			ids: func(t *testing.T, s *Store) []uuid.UUID {
				var ids []uuid.UUID
				for _, a := range must(s.Agents(t.Context(), w.key, Query{Limit: 100}))(t).Items {
					ids = append(ids, a.ID)
				}
				return ids
			},
		},
		"a session": {
			kind: "session", replay: replaySession.Keyed,
			do: func(ctx context.Context, s *Store, idem *Idempotency) (any, uuid.UUID, error) {
				v, err := s.CreateSession(ctx, w.key, n(idem))
				return v, v.ID, err
			},
			claimOnly: func(ctx context.Context, s *Store, idem *Idempotency, quota string) error {
				idem.Bounded = true
				return s.claimAndEnter(ctx, s.sessionCreation(ctx, w.key, n(idem)), quota)
			},
			ids: func(t *testing.T, s *Store) []uuid.UUID {
				ids, _ := listed(t, s, w.byKey(), Query{Limit: 100}, nil)
				return ids
			},
		},
	}
}

// onEachCreation runs the test for each creation, on a tenant of its own.
func onEachCreation(t *testing.T, s *Store, test func(t *testing.T, w tenant, c keyedCreation)) {
	t.Helper()
	for name := range (tenant{}).keyedCreations(s) {
		t.Run(name, func(t *testing.T) {
			w := newTenant(t, s, NewSession{MaxActions: 1})
			test(t, w, w.keyedCreations(s)[name])
		})
	}
}

// wantListed checks that of the objects that have an entry these exist, and no others.
func (c keyedCreation) wantListed(t *testing.T, s *Store, want ...uuid.UUID) {
	t.Helper()
	got := c.ids(t, s)
	slices.SortFunc(got, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	slices.SortFunc(want, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	wantEqual(t, "those that are listed", got, want)
}

var creationCalls = regexp.MustCompile(`^(claim_key|authenticate_organization|replay|exists|zrem|((claim_and_)?index|create)_(agent|session))$`)

// callsOf returns how often the store has run each script that a creation runs.
func callsOf(t *testing.T, s *Store) map[string]int {
	t.Helper()
	calls := map[string]int{}
	for labels, number := range redistest.Gathered(t, s, "remit_redis_call_duration_seconds") {
		if operation, _, _ := strings.Cut(labels, " "); creationCalls.MatchString(operation) {
			calls[operation] += int(number)
		}
	}
	return calls
}

// wantCalls checks which scripts an action runs.
func wantCalls(t *testing.T, s *Store, what string, want map[string]int, do func()) {
	t.Helper()
	before := callsOf(t, s)
	do()
	got := callsOf(t, s)
	for name := range got {
		if got[name] -= before[name]; got[name] == 0 {
			delete(got, name)
		}
	}
	wantEqual(t, what, got, want)
}

// A create is one script in the organization's cell, for claim and entry, and one in the agent's, for the object or the
// outcome.
func TestACreationAndItsReplayAreTwoCallsEach(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		onEachCreation(t, s, func(t *testing.T, _ tenant, c keyedCreation) {
			idem := sealedKey("secret", "credential")
			before := c.ids(t, s)
			var first any
			var id uuid.UUID
			wantCalls(t, s, "the creation", map[string]int{"claim_and_index_" + c.kind: 1, "create_" + c.kind: 1}, func() {
				var err error
				first, id, err = c.do(t.Context(), s, idem)
				wantError(t, "the creation", err, nil)
			})
			again := sealedKey("secret", "another")
			wantUnchanged(t, s, "the replay", func() {
				wantCalls(t, s, "the replay", map[string]int{"claim_and_index_" + c.kind: 1, "replay": 1}, func() {
					replayed, _, err := c.do(t.Context(), s, again)
					if err != nil || !again.Outcome.Replayed || !reflect.DeepEqual(replayed, first) {
						t.Errorf("again: %+v, %v, replayed %t, first %+v", replayed, err, again.Outcome.Replayed, first)
					}
				})
			})
			c.wantListed(t, s, append(before, id)...)
			wantCalls(t, s, "the creation without a key", map[string]int{"index_" + c.kind: 1, "create_" + c.kind: 1}, func() {
				_, _, err := c.do(t.Context(), s, nil)
				wantError(t, "the creation without a key", err, nil)
			})
		})
	})
}

// An instance may end between the claim and the creation. The same request then creates an object with an entry of its own; the
// entry of the first is dropped by the reader that meets it.
func TestACreationContinuesFromAClaimWithoutAnOutcome(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		onEachCreation(t, s, func(t *testing.T, _ tenant, c keyedCreation) {
			before := c.ids(t, s)
			wantError(t, "the claim", c.claimOnly(WithRequestID(t.Context(), "crashed"), s, sealedKey("secret", "credential"), ""), nil)
			c.wantListed(t, s, before...)
			idem := sealedKey("secret", "credential")
			var id uuid.UUID
			wantCalls(t, s, "the request again", map[string]int{
				"claim_and_index_" + c.kind: 1, "replay": 1, "index_" + c.kind: 1, "create_" + c.kind: 1,
			}, func() {
				var err error
				_, id, err = c.do(t.Context(), s, idem)
				wantError(t, "the request again", err, nil)
			})
			wantEqual(t, "what was never created is replayed", idem.Outcome.Replayed, false)
			c.wantListed(t, s, append(before, id)...)
			again := sealedKey("secret", "credential")
			if _, replayed, err := c.do(t.Context(), s, again); err != nil || replayed != id || !again.Outcome.Replayed {
				t.Errorf("and again: %v, %v, replayed %t", replayed, err, again.Outcome.Replayed)
			}
		})
	})
}

func TestAnAbandonedClaimOnACreationIsReleasedForAnotherRequest(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		onEachCreation(t, s, func(t *testing.T, w tenant, c keyedCreation) {
			before := c.ids(t, s)
			wantError(t, "the claim", c.claimOnly(t.Context(), s, sealedKey("secret", "credential"), ""), nil)
			other := sealedKey("secret", "credential")
			other.Fingerprint = [32]byte{2}
			wantUnchanged(t, s, "while the first may still run", func() {
				_, _, err := c.do(t.Context(), s, other)
				wantError(t, "while the first may still run", err, ErrIdempotencyKeyReused)
			})
			place := s.core.ClaimPlace(w.key.Organization, other)
			must(peek(t, s).PExpire(t.Context(), place, kernel.OutcomeLifetime-kernel.AbandonedAfter-time.Second).Result())(t)
			_, id, err := c.do(t.Context(), s, other)
			wantError(t, "later", err, nil)
			c.wantListed(t, s, append(before, id)...)
		})
	})
}

// script_test.go, idempotency_test.go and sealed_test.go lose the replies of the claim and the creation.
func TestACreationWhoseReplayIsLostHappensOnce(t *testing.T) {
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		loadScripts(t, s)
		onEachCreation(t, s, func(t *testing.T, _ tenant, c keyedCreation) {
			before := c.ids(t, s)
			_, id, err := c.do(t.Context(), s, sealedKey("secret", "credential"))
			wantError(t, "the first time", err, nil)
			lost := func() error { return errOf2(c.do(t.Context(), s, sealedKey("secret", "credential"))) }
			wantEqual(t, "how often it was sent", wantLost(t, "with a lost reply", p, c.replay.SHA(), lost, ErrOutcomeUnknown), 1)
			idem := sealedKey("secret", "credential")
			if _, again, err := c.do(t.Context(), s, idem); err != nil || again != id || !idem.Outcome.Replayed {
				t.Errorf("again: %v, %v, replayed %t", again, err, idem.Outcome.Replayed)
			}
			c.wantListed(t, s, append(before, id)...)
		})
	})
}

// At the quota a repeated request is answered, and what is not one leaves its idempotency key unused.
func TestAtItsQuotaAnIndexTakesNoClaim(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		onEachCreation(t, s, func(t *testing.T, _ tenant, c keyedCreation) {
			first := sealedKey("secret", "credential")
			_, id, err := c.do(t.Context(), s, first)
			wantError(t, "the first", err, nil)
			other := sealedKey("secret", "credential")
			other.Key = "another-" + longKey
			wantUnchanged(t, s, "beyond the quota", func() {
				if err := c.claimOnly(t.Context(), s, other, "1"); !kernel.IsRefusedCreation(err) {
					t.Errorf("beyond the quota: %v", err)
				}
				again := sealedKey("secret", "credential")
				wantError(t, "the claim of the first, again", c.claimOnly(t.Context(), s, again, "1"), nil)
				wantEqual(t, "the first is found", again.Outcome.Claim.Before, true)
			})
			if _, replayed, err := c.do(t.Context(), s, sealedKey("secret", "credential")); err != nil || replayed != id {
				t.Errorf("the first again: %v, %v", replayed, err)
			}
		})
	})
}

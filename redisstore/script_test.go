package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

func TestAChargeWhoseReplyIsLostIsOfUnknownOutcomeAndNotSentAgain(t *testing.T) {
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
		eachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
			crowd(t, s)
			w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: money.USD})
			token := byToken(w.exchange(t, s))
			loadScripts(t, s)
			for charges := int64(1); charges <= 5; charges++ {
				p.LoseReplies(chargeSession.SHA(), 100)
				usage, err := s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1, Value: 7})
				if !errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrUnavailable) || usage != (Usage{}) {
					t.Errorf("%+v, %v, want %v", usage, err, ErrOutcomeUnknown)
				}
				wantEqual(t, "how often it was sent", p.Requests(), 1)
				w.wantUsed(t, s, w.session.ID, charges, money.MicroUSD(7*charges), Delegated{})
			}
		})
	})
}

// A read can be repeated, and an index entry without its object is ignored: losing their replies leaves nothing in doubt.
func TestALostReplyLeavesDoubtOnlyAboutWhatMayHaveHappened(t *testing.T) {
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		operations, _ := newOperations(t, s)
		loadScripts(t, s)
		crowd(t, s)
		for _, operation := range operations {
			t.Run(operation.name, func(t *testing.T) {
				p.LoseReplies(operation.script.SHA(), 100)
				err := operation.do(t.Context(), s)
				want, not := ErrOutcomeUnknown, ErrUnavailable
				if operation.script.Access() == reads || operation.beforeTheChange() || operation.usesUpAProof() {
					want, not = not, want
				}
				if !errors.Is(err, want) || errors.Is(err, not) {
					t.Errorf("%v, want %v and not %v", err, want, not)
				}
				wantEqual(t, "how often it was sent", p.Requests(), 1)
			})
		}
	})
}

func TestAScriptThatRedisForgotStillRunsOnce(t *testing.T) {
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
		onEachForgetful(t, func(t *testing.T, s *Store) {
			crowd(t, s)
			operations, _ := newOperations(t, s)
			for _, operation := range operations {
				forgetScripts(t, s)
				wantError(t, operation.name, operation.do(t.Context(), s), nil)
			}
			w := newTenant(t, s, roomy)
			for charges := int64(1); charges <= 3; charges++ {
				forgetScripts(t, s)
				must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 7}))(t)
				w.wantUsed(t, s, w.session.ID, charges, money.MicroUSD(7*charges), Delegated{})
			}
			for range 2 { // the second is a replay
				forgetScripts(t, s)
				must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 7, Idempotency: &Idempotency{Key: "k"}}))(t)
				w.wantUsed(t, s, w.session.ID, 4, 28, Delegated{})
			}
		})
	})
}

// onEachForgetful is onEachRedisAndCluster for tests that call forgetScripts.
func onEachForgetful(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Helper()
	onMiniredis(t, Config{}, test)
	if testing.Short() {
		return
	}
	for name, server := range map[string]func() (string, error){"redis": forgetfulRedis, "cluster": forgetfulCluster} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, openLeastPrivileged(t, Config{}, server))
		})
	}
}

// forgetScripts makes every server of the store forget all scripts. No other test may share the servers: see onEachForgetful.
func forgetScripts(t *testing.T, s *Store) {
	t.Helper()
	onEachPrimary(t, s, func(ctx context.Context, server *redis.Client) error { return server.ScriptFlush(ctx).Err() })
}

// While a slot moves, its keys are on two servers: a script over both cannot run, and may be sent again. What each server
// says of it is really said: ASK, TRYAGAIN, and MOVED to a store that has not heard of the move.
func TestChargesFollowASlotThatMoves(t *testing.T) {
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
		addresses := redistest.StartCluster(t, 2)
		url, err := asLeastPrivileged(t.Context(), "redis+cluster://"+strings.Join(addresses, ","))
		s := openStore(t, Config{}, url, err)
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: money.USD})
		token := byToken(w.exchange(t, s))
		unaware := must(Open(s.config))(t)
		defer unaware.Close()
		move := redistest.NewMove(t, s.keys.Agent(w.agent.ID), addresses)
		var charged int64
		wantCharged := charging(t, move, token, w.session.ID, &charged)
		crowd(t, s)
		crowd(t, unaware)

		wantCharged("before", s, "")
		wantCharged("before, by the unaware", unaware, "")
		move.Begin(t)
		wantCharged("with no key moved", s, "")
		redistest.MoveKey(t, move.Source, move.To, s.keys.Session(w.agent.ID, w.session.ID))
		_, err = s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1})
		if !errors.Is(err, ErrUnavailable) || !redis.HasErrorPrefix(err, "TRYAGAIN") {
			t.Errorf("with one of two keys moved: %v, want %v by TRYAGAIN", err, ErrUnavailable)
		}
		done := make(chan error)
		go func() { // it waits for the slot
			_, err := s.Charge(context.Background(), token, w.session.ID, Charge{Count: 1})
			done <- err
		}()
		before := move.Said(t, "TRYAGAIN")
		eventually(t, "it is told to try again, and does", func() bool { return move.Said(t, "TRYAGAIN") > before+3 })
		move.Rest(t)
		wantError(t, "when the rest had moved", <-done, nil)
		charged++
		wantCharged("with all keys moved", s, "ASK")
		move.End(t)
		wantCharged("after", s, "")
		wantCharged("after, by the unaware", unaware, "MOVED")
	})
}

// charging returns what charges one action at a store, and checks that it is the only one since the last, and that a node
// has answered an error if one is named. It counts in charged.
func charging(t *testing.T, m redistest.SlotMove, token Caller, session uuid.UUID, charged *int64) func(when string, by *Store, said string) {
	return func(when string, by *Store, said string) {
		t.Helper()
		before := m.Said(t, said)
		usage := must(by.Charge(t.Context(), token, session, Charge{Count: 1}))(t)
		*charged++
		wantEqual(t, when+": how many actions", usage.ActionCount, *charged)
		if said != "" && m.Said(t, said) == before {
			t.Errorf("%s: no server said %s", when, said)
		}
	}
}

func TestRepliesThatNoScriptReturnsAreErrors(t *testing.T) {
	t.Parallel()
	usage := []any{"1", "2", "3", "4", "0", "5"}
	for name, values := range map[string][]any{
		"empty":                          {},
		"no code":                        {int64(1)},
		"unknown code":                   {"nonsense"},
		"a limit without usage":          {"limit", "max_actions"},
		"a limit with half of it":        append([]any{"limit", "max_actions"}, usage[:4]...),
		"a limit in words":               {"limit", "max_actions", "one", "2", "3", "4", "0", "5"},
		"a limit that is no text":        append([]any{"limit", int64(1)}, usage...),
		"a scope that is missing":        {"scope_not_held"},
		"not active, without times":      {"not_active", "", ""},
		"not active, with nil for time":  {"not_active", "", "", nil, "1"},
		"not pending, without status":    {"not_pending", "1", "", "2"},
		"not pending, with nil for time": {"not_pending", nil, "", "2", "pending"},
		"below usage, without it":        {"below_usage", "max_actions"},
	} {
		wantError(t, name, allRefusals().Read(&reply{}, values), errReply)
	}
}

func TestAReplyKeepsItsFirstDecodingError(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*reply){
		"text that is a number":     func(r *reply) { r.Text(0) },
		"text that is missing":      func(r *reply) { r.Text(9) },
		"optional that is missing":  func(r *reply) { r.Optional(9) },
		"number in words":           func(r *reply) { r.Number(1) },
		"number or 0 in words":      func(r *reply) { r.NumberOr0(1) },
		"money beyond 64 bits":      func(r *reply) { kernel.MoneyAt(r, 2) },
		"time in words":             func(r *reply) { r.Time(1) },
		"time or zero in words":     func(r *reply) { r.TimeOrZero(1) },
		"id of 5 bytes":             func(r *reply) { r.ID(1) },
		"ids that are no array":     func(r *reply) { kernel.Members{}.IDs(r, 1) },
		"ids of which one is short": func(r *reply) { kernel.Members{}.IDs(r, 4) },
	} {
		id := uuid.New()
		r := &reply{Values: []any{int64(1), "words", "99999999999999999999", nil, []any{string(id[:]), "short"}}}
		read(r)
		wantError(t, name, r.Err, errReply)
	}
	wantError(t, "list that is text", (&reply{Values: []any{"words"}}).List(0).Err, errReply)
}

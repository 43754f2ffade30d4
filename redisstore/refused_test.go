package redisstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/test/redistest"
)

// goOnWhenFull are the writes that a full Redis still makes: they take authority away or give memory free, and what they
// add is small and bounded. docs/operations.md has this list.
var goOnWhenFull = []string{
	"RotateAPIKey", "RotateAPIKeyOf", "DeleteAPIKey", "DeleteSessionKey", "RevokeAgent", "RotateAgentSecret", "RevokeFamily", "EndFamily",
	"EndFamily of a token without a refresh token", "RotateAgentSecret with all tokens", "Commit", "Commit with an idempotency key", "Rollback",
	"Rollback with an idempotency key",
	"EndSession", "SettleLease", "SettleLease with an idempotency key", "DeleteAgent", "Suspend", "ReplaceAPIKey",
	"SuspendAgent", "ResumeAgent", "SuspendSession", "ResumeSession", "ChangeAgent", // whose change is of scopes alone
	"CheckAssertion",
}

func TestAWriteThatRedisRefusesIsUnavailableAndChangesNothing(t *testing.T) {
	onEachRefusing(t, allRefusing, func(t *testing.T, s *Store, state refusing, refuse, accept func()) {
		operations, tenants := newOperations(t, s)
		for _, w := range tenants {
			s.core.Proven.Noted(w.key, time.Now().Add(time.Hour)) // else a read notes the key's use after a minute, also in a full Redis
		}
		var refused, reading, goingOn []operation
		for _, o := range operations {
			switch {
			case o.script.Access() == reads && state.name != isReplica.name:
				reading = append(reading, o)
			case state.name == isFull.name && slices.Contains(goOnWhenFull, o.name):
				goingOn = append(goingOn, o)
			default:
				refused = append(refused, o)
			}
		}
		refuse()
		before := dump(t, s)
		atOnce(t, s, refused, func(o operation, err error) {
			if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) || !redis.HasErrorPrefix(err, state.answer) {
				t.Errorf("%s: %v, want %v by %s", o.name, err, ErrUnavailable, state.answer)
			}
		})
		atOnce(t, s, reading, func(o operation, err error) { wantError(t, o.name, err, nil) })
		wantSameDump(t, s, state.name, before)
		atOnce(t, s, goingOn, func(o operation, err error) { wantError(t, o.name, err, nil) })
		accept()
		atOnce(t, s, refused, func(o operation, err error) {
			if o.beforeTheChange() {
				return // the same as another of them, on the same tenant
			}
			wantError(t, o.name+", afterwards", err, nil)
		})
	})
}

// What a full Redis still does has its whole effect, also where more than the operation itself is to be done: what was due goes first,
// reuse ends a family, an assertion is used up. No script goes on after a command that Redis refuses.
func TestOperationsAllowedInAFullRedisHaveTheirFullEffect(t *testing.T) {
	onEachRefusing(t, []refusing{isFull}, func(t *testing.T, s *Store, _ refusing, refuse, accept func()) {
		ctx := t.Context()
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 1000})
		grant, reused := w.exchange(t, s), w.exchange(t, s)
		for generation := range uint32(2) {
			must(s.RotateRefresh(ctx, w.agent.ID, reused.Family, generation+1, GrantRequest{}))(t)
		}
		token, caller := grant.AccessToken, byToken(grant)
		toRollBack, keyed, due := w.begin(t, s, token, 10), w.begin(t, s, token, 40), w.begin(t, s, token, 300)
		w.letPass(t, s, due)
		ending := w
		ending.session = w.newSession(t, s, time.Hour)
		ending.begin(t, s, token, 5)
		must(peek(t, s).HSet(ctx, s.keys.Session(w.agent.ID, ending.session.ID), "hx", 1).Result())(t) // nothing is due then
		expired := w
		expired.session = w.newSession(t, s, time.Hour)
		expired.letSessionPass(t, s)
		signing := "signing-" + uuid.NewString()
		mustDo(t, s.KeepFirstKey(ctx, KeyKind(signing), "k1", "m1"))
		must(s.KeepIssuer(ctx, "https://kept"))(t)

		refuse()
		rolledBack := must(s.Rollback(ctx, caller, toRollBack.ID, Rollback{Reason: "full"}))(t)
		w.wantTransaction(t, s, grant, rolledBack)
		w.wantEvents(t, s, "transaction.expired", 1) // the hold that was due went first
		idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
		must(s.Rollback(ctx, caller, keyed.ID, Rollback{Idempotency: idem}))(t)
		again := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
		must(s.Rollback(ctx, caller, keyed.ID, Rollback{Idempotency: again}))(t)
		wantEqual(t, "whether the keyed rollback is replayed", again.Outcome.Replayed, true)
		w.wantUsage(t, s, Usage{MaxActions: 10, ActionCount: 3, MaxValue: 1000, Expires: w.session.Expires})

		must(s.EndSession(ctx, caller, ending.session.ID))(t)
		if session := must(s.Session(ctx, caller, ending.session.ID))(t); session.Status != Completed || session.ValueHeld != 0 {
			t.Errorf("the session that was ended is %+v", session)
		}
		wantError(t, "EndSession of an expired one", errOf(s.EndSession(ctx, caller, expired.session.ID)), &NotActiveError{Expired})

		wantError(t, "RotateRefresh of a spent one", errOf(s.RotateRefresh(ctx, w.agent.ID, reused.Family, 1, GrantRequest{})), ErrTokenReused)
		wantError(t, "CheckToken after reuse", s.CheckToken(ctx, reused.AccessToken), ErrInvalidToken)
		wantError(t, "CheckAssertion", s.CheckAssertion(ctx, w.assertion(1)), nil)
		wantError(t, "CheckAssertion again", s.CheckAssertion(ctx, w.assertion(1)), ErrInvalidCredentials)
		w.wantEvents(t, s, "token.reuse_detected", 1)
		w.wantEvents(t, s, "session.ended", 1)

		must(s.RotateKey(ctx, KeyKind(signing), "k2", "m2", 0, time.Hour))(t)
		wantError(t, "RetireKey", s.RetireKey(ctx, KeyKind(signing), "k1"), nil)
		wantEqual(t, "the issuer", must(s.KeepIssuer(ctx, "https://other"))(t), "https://kept")
		wantError(t, "KeepFirstKey", s.KeepFirstKey(ctx, KeyKind(signing), "k3", "m3"), nil)
		wantError(t, "SetIssuer", s.SetIssuer(ctx, "https://kept"), nil)
		accept()
	})
}

// What a full Redis may be made to add is bounded: nothing that repeats without end, or keeps a state, goes on.
func TestAFullRedisTakesNothingLargeOrEndless(t *testing.T) {
	onEachRefusing(t, []refusing{isFull}, func(t *testing.T, s *Store, _ refusing, refuse, accept func()) {
		ctx := t.Context()
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 1000})
		grant := w.exchange(t, s)
		token, caller := grant.AccessToken, byToken(grant)
		pending, stated, alone := w.begin(t, s, token, 10), w.begin(t, s, token, 20), must(s.Begin(ctx, token, w.alone(7)))(t)
		must(s.Commit(ctx, token, stated.ID, Commit{PostState: `{"stock":2}`}))(t)
		idem := func() *Idempotency { return &Idempotency{Key: uuid.NewString()} }
		refuse()
		before := dump(t, s)
		for name, err := range map[string]error{
			"a commit with a state":                errOf(s.Commit(ctx, token, pending.ID, Commit{PostState: `{"stock":2}`})),
			"a commit with a state, of no session": errOf(s.Commit(ctx, token, alone.ID, Commit{PostState: `{"stock":2}`})),
			"a commit with a state, once":          errOf(s.Commit(ctx, token, pending.ID, Commit{PostState: `{"stock":2}`, Idempotency: idem()})),
			"a rollback that repeats a state":      errOf(s.Rollback(ctx, caller, stated.ID, Rollback{Scopes: w.agent.Scopes, Idempotency: idem()})),
			"the outcome of a second commit":       errOf(s.Commit(ctx, token, stated.ID, Commit{Idempotency: idem()})),
			"the claim of an organization's key":   errOf(s.Rollback(ctx, w.byKey(), pending.ID, Rollback{Idempotency: idem()})),
			"a refresh":                            errOf(s.RotateRefresh(ctx, w.agent.ID, grant.Family, 1, GrantRequest{})),
		} {
			if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) || !redis.HasErrorPrefix(err, "OOM") {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantSameDump(t, s, isFull.name, before)
		accept()
	})
}

// A write that goes on lets everything behind it in its script go on. So no call that a full Redis refuses may share one with
// a call that it lets through.
func TestAFullRedisRefusesWhatIsLargeAlsoBesideWhatGoesOn(t *testing.T) {
	t.Parallel()
	s, admin := withOwnRedis(t, Config{})
	w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 1000})
	token := w.exchange(t, s).AccessToken
	commit := func(one Transaction, n Commit, fine func(error) bool) func() {
		return func() {
			if _, err := s.Commit(context.Background(), token, one.ID, n); !fine(err) {
				t.Errorf("a commit with the state %q: %v", n.PostState, err)
			}
		}
	}
	goesOn, refused := func(err error) bool { return err == nil }, func(err error) bool { return redis.HasErrorPrefix(err, "OOM") }
	var calls, full []func()
	for range 5 { // in a pipeline they are in no certain order
		calls = append(calls, commit(w.begin(t, s, token, 1), Commit{}, goesOn))
		full = append(full, commit(w.begin(t, s, token, 1), Commit{}, goesOn),
			commit(w.begin(t, s, token, 1), Commit{PostState: `{"stock":2}`}, refused))
	}
	g := newGate(t, s)
	g.pass(t, s, calls...) // Redis knows the scripts then
	isFull.begin(t, admin)
	g.pass(t, s, full...)
	isFull.end(t, admin)
}

// A read whose way would have led by a write (what is seen expired is noted, holds that are due are released, entries of
// an index are moved) tells the same as if it had been made.
func TestReadsReturnTheSameWhileRedisRefusesWrites(t *testing.T) {
	onEachRefusing(t, readableRefusing, func(t *testing.T, s *Store, state refusing, refuse, accept func()) {
		ctx := t.Context()
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 1000 * money.USD})
		grant := w.exchange(t, s)
		caller := byToken(grant)
		pending, due := w.begin(t, s, grant.AccessToken, 5), w.begin(t, s, grant.AccessToken, 40)
		w.letPass(t, s, due)
		expired, many := w, w
		expired.session = w.newSession(t, s, time.Hour)
		expired.letSessionPass(t, s)
		many.session = w.newSession(t, s, time.Hour)
		many.holdFor(t, s, 2*peekHolds+1, time.Now().Add(-time.Minute))
		many.holdFor(t, s, 1, time.Now().Add(time.Hour))
		must(peek(t, s).HSet(ctx, s.keys.Session(many.agent.ID, many.session.ID), "h", 7*(2*peekHolds+2), "hx", 1).Result())(t)

		sessions := []Session{w.session, expired.session, many.session}
		refuse()
		before := dump(t, s)
		for _, c := range []Caller{caller, w.byKey()} {
			for i, held := range []money.MicroUSD{5, 0, 7} {
				if read, err := s.Session(ctx, c, sessions[i].ID); err != nil || read.ValueHeld != held {
					t.Errorf("Session: %+v, %v, want %s held", read, err, held)
				}
			}
		}
		during := w.read(t, s, grant, sessions, pending, due)
		wantError(t, "CheckToken", s.CheckToken(ctx, grant.AccessToken), nil)
		if state.name != isFull.name { // which goes on releasing what is due
			wantSameDump(t, s, state.name, before)
		}
		accept()
		afterwards := w.read(t, s, grant, sessions, pending, due)
		for what := range afterwards {
			wantEqual(t, what, during[what], afterwards[what])
		}
		expired.wantEvents(t, s, "session.expired", 1)
		many.wantHoldsAsStored(t, s)
	})
}

// read returns what all reads tell of sessions and transactions, by the agent and by its organization; of the lists what is
// shown of them.
func (w tenant) read(t *testing.T, s *Store, g Grant, sessions []Session, transactions ...Transaction) map[string]any {
	t.Helper()
	ctx, found := t.Context(), map[string]any{}
	for by, c := range map[string]Caller{"token: ": byToken(g), "key: ": w.byKey()} {
		for _, session := range sessions {
			found[by+session.ID.String()] = must(s.Session(ctx, c, session.ID))(t)
		}
		for _, one := range transactions {
			found[by+one.ID.String()] = must(s.Transaction(ctx, c, one.ID))(t)
		}
		for _, status := range []Status{"", Active, Expired} {
			found[by+"sessions "+string(status)] = must(s.Sessions(ctx, c, Query{Limit: 10, Status: status}))(t)
		}
		found[by+"transactions"] = must(s.Transactions(ctx, c, Query{Limit: 10}))(t)
		found[by+"transactions of the session"] = must(s.Transactions(ctx, c, Query{Limit: 10, Session: w.session.ID}))(t)
		_, _, err := s.Events(ctx, c, w.agent.ID, "", 10)
		wantError(t, by+"Events", err, nil)
	}
	found["agent"] = must(s.Agent(ctx, w.key, w.agent.ID))(t)
	found["agents"] = must(s.Agents(ctx, w.key, Query{Limit: 10}))(t)
	return found
}

// A new secret is accepted even while Redis refuses writes; its next use is recorded.
func TestASecretIsCheckedWhileRedisRefusesToWrite(t *testing.T) {
	onEachRefusing(t, readableRefusing, func(t *testing.T, s *Store, state refusing, refuse, accept func()) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		noted := func() bool {
			return must(peek(t, s).HExists(t.Context(), s.keys.Agent(w.agent.ID), "secret_used").Result())(t)
		}
		refuse()
		must(s.CheckSecret(t.Context(), w.agent.ID, w.secret))(t)
		wantError(t, "a wrong one", errOf(s.CheckSecret(t.Context(), w.agent.ID, [32]byte{99})), ErrInvalidCredentials)
		wantEqual(t, "whether it is noted", noted(), state.name == isFull.name)
		accept()
		must(s.CheckSecret(t.Context(), w.agent.ID, w.secret))(t)
		wantEqual(t, "whether its next use is noted", noted(), true)
	})
}

func TestReadySaysWhyRedisRefusesToWriteAndRecovers(t *testing.T) {
	onEachRefusing(t, allRefusing, func(t *testing.T, s *Store, state refusing, refuse, accept func()) {
		must(s.Ready(t.Context()))(t)
		refuse()
		ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
		defer cancel()
		_, err := s.Ready(ctx)
		wantNotReady(t, err, state.reason)
		accept()
		must(s.Ready(t.Context()))(t)
	})
}

// wantNotReady checks the public reason.
func wantNotReady(t *testing.T, err error, reason string) {
	t.Helper()
	var notReady *NotReadyError
	if !errors.As(err, &notReady) || notReady.Reason != reason || !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v, want %q", err, reason)
	}
}

// One primary of a cluster that refuses to write is enough: a part of the agents is on it.
func TestReadyWritesToEveryPrimary(t *testing.T) {
	t.Parallel()
	addresses := redistest.StartCluster(t, 3)
	s := openStore(t, Config{}, "redis+cluster://"+addresses[0], nil)
	for _, address := range addresses {
		server := redistest.PlainClient(t, "redis://"+address)
		isFull.begin(t, server)
		for range 3 {
			_, err := s.Ready(t.Context())
			wantNotReady(t, err, isFull.reason)
		}
		isFull.end(t, server)
		must(s.Ready(t.Context()))(t)
	}
}

package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// keyedOperation is an operation that takes an idempotency key, on a tenant of its own.
type keyedOperation struct {
	name    string
	script  kernel.KeyedScript
	byKey   bool // an API key asks, which claims the idempotency key in its organization's cell as well
	claimed bool // the idempotency key is tied to the request before the operation's script, by an agent too
	do      func(ctx context.Context, s *Store, idem *Idempotency) (any, error)
}

// keyedTenant is a tenant with a transaction that is pending.
type keyedTenant struct {
	tenant
	grant   Grant
	pending Transaction
}

func newKeyedTenant(t *testing.T, s *Store) keyedTenant {
	t.Helper()
	w := keyedTenant{tenant: newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 1000})}
	w.grant = w.exchange(t, s)
	w.pending = w.begin(t, s, w.grant.AccessToken, 20)
	return w
}

// everyKeyed returns all operations that take an idempotency key, as the tenant runs them.
func (w keyedTenant) everyKeyed() []keyedOperation {
	begin := func(n NewTransaction) func(context.Context, *Store, *Idempotency) (any, error) {
		return func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			own := n
			own.Idempotency, own.Metadata = idem, `{"n":1}`
			return s.Begin(ctx, w.grant.AccessToken, own)
		}
	}
	all := []keyedOperation{
		{"CreateSession", createSession, true, true, func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			return s.CreateSession(ctx, w.key, NewSession{Agent: w.agent.ID, MaxActions: 7, MaxValue: 8, Lifetime: time.Hour,
				Scopes: []string{"read"}, Metadata: `{"n":1}`, Idempotency: idem})
		}},
		{"Begin", beginSessionTransaction, false, false, begin(w.beginning(30))},
		{"Begin without a session", beginTransaction, false, false, begin(w.alone(30))},
		{"Commit", commitTransaction, false, false, func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			return s.Commit(ctx, w.grant.AccessToken, w.pending.ID,
				Commit{Value: new(money.MicroUSD(25)), PostState: `{"a":"*2:$1:x-\n"}`, Idempotency: idem})
		}},
		{"ChangeLimits", changeLimits, true, true, func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			return s.ChangeLimits(ctx, w.key, w.session.ID, NewLimits{AddValue: new(money.MicroUSD(3)), Idempotency: idem})
		}},
		{"ChangeHold", changeHold, false, false, func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			return s.ChangeHold(ctx, w.grant.AccessToken, w.pending.ID, NewHold{Value: new(money.MicroUSD(25)), Idempotency: idem})
		}},
		{"CreateSessionKey", createSessionKey, true, true, func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			return s.CreateSessionKey(ctx, w.key, w.session.ID, NewSessionKey{Name: "editor", Idempotency: idem})
		}},
	}
	for _, c := range []Caller{byToken(w.grant), w.byKey()} {
		byKey := c.Key != nil
		by := map[bool]string{false: " by token", true: " by key"}[byKey]
		all = append(all, keyedOperation{"Charge" + by, chargeSession, byKey, byKey, func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			return s.Charge(ctx, c, w.session.ID, Charge{Count: 2, Value: 3, Idempotency: idem})
		}}, keyedOperation{"ChargeBatch" + by, chargeBatch, byKey, true, func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			charges := []BatchCharge{{w.session.ID, Charge{Count: 2, Value: 3}}, {w.session.ID, Charge{Count: 1, Scope: "admin"}},
				{w.session.ID, Charge{Count: 500}}, {w.session.ID, Charge{Count: 1, Value: 1}}}
			outcomes, err := s.ChargeBatch(ctx, c, charges, idem)
			if err != nil {
				return nil, err
			}
			return outcomes, outcomes[0].Err
		}}, keyedOperation{"Rollback" + by, rollbackTransaction, byKey, byKey, func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			return s.Rollback(ctx, c, w.pending.ID, Rollback{Reason: "why", Idempotency: idem})
		}})
	}
	return all
}

// keyed returns one of the operations, as the tenant runs it now.
func (w keyedTenant) keyed(name string) keyedOperation {
	all := w.everyKeyed()
	return all[slices.IndexFunc(all, func(o keyedOperation) bool { return o.name == name })]
}

// onEachKeyed is onEachRedis, in parallel with other tests, for each operation that takes an idempotency key and that is concerned.
func onEachKeyed(t *testing.T, concerned func(keyedOperation) bool,
	test func(t *testing.T, s *Store, w keyedTenant, operation keyedOperation)) {
	t.Helper()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) { eachKeyed(t, s, concerned, test) })
}

// eachKeyed runs the test for each of the operations, on a tenant of its own. Without concerned, all are.
func eachKeyed(t *testing.T, s *Store, concerned func(keyedOperation) bool,
	test func(t *testing.T, s *Store, w keyedTenant, operation keyedOperation)) {
	t.Helper()
	for i, operation := range (keyedTenant{}).everyKeyed() {
		if concerned != nil && !concerned(operation) {
			continue
		}
		t.Run(operation.name, func(t *testing.T) {
			w := newKeyedTenant(t, s)
			test(t, s, w, w.everyKeyed()[i])
		})
	}
}

// effects are the visible results of operations, which show that something happened once.
type effects struct {
	usage                          Usage
	sessions, transactions, events int
}

func (w keyedTenant) effects(t *testing.T, s *Store) effects {
	t.Helper()
	usage := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Usage
	usage.Expires = time.Time{}
	return effects{
		usage, len(indexed(t, s, s.keys.OrganizationOpen(w.key.Organization))),
		len(indexed(t, s, s.keys.OrganizationTransactions(w.key.Organization))), len(w.follow(s)(t)),
	}
}

// repeatOf returns a fresh Idempotency for the same request: each request has its own replay fields.
func repeatOf(o *Idempotency) *Idempotency {
	return &Idempotency{Key: o.Key, Fingerprint: o.Fingerprint}
}

func TestAnIdempotencyKeyReplaysTheFirstOutcome(t *testing.T) {
	onEachKeyed(t, nil, func(t *testing.T, s *Store, w keyedTenant, operation keyedOperation) {
		idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
		before := w.effects(t, s)
		first := must(operation.do(WithRequestID(t.Context(), "r-1"), s, idem))(t)
		wantEqual(t, "it is a replay", idem.Outcome.Replayed, false)
		if w.effects(t, s) == before {
			t.Error("it had no effect")
		}
		for range 3 {
			wantUnchanged(t, s, "again", func() {
				again := repeatOf(idem)
				wantEqual(t, "again", must(operation.do(WithRequestID(t.Context(), "r-2"), s, again))(t), first)
				if !again.Outcome.Replayed || again.Outcome.FirstRequest != "r-1" {
					t.Errorf("%+v", again)
				}
			})
		}
		other := &Idempotency{Key: "other", Fingerprint: [32]byte{1}}
		_, _ = operation.do(t.Context(), s, other)
		wantEqual(t, "by another key it is a replay", other.Outcome.Replayed, false)
	})
}

// The instance fills in missing fields, so a replay returns what the first request's instance filled in.
func TestASessionThatIsReplayedIsTheOneThatWasCreated(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		create := func(maxActions int64, maxValue money.MicroUSD, lifetime time.Duration) Session {
			return must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: maxActions,
				MaxValue: maxValue, Lifetime: lifetime, Idempotency: &Idempotency{Key: "key"}}))(t)
		}
		first := create(7, 8, time.Hour)
		wantEqual(t, "again", create(70, 80, 2*time.Hour), first)
	})
}

// However many ask at once, on two instances of the service, it happens once, and all hear the same.
func TestRequestsAtOnceWithOneIdempotencyKeyHappenOnce(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		instances := []*Store{s, anotherInstance(t, s)}
		eachKeyed(t, s, nil, func(t *testing.T, s *Store, w keyedTenant, operation keyedOperation) {
			var replayed atomic.Int64
			outcomes := make([]any, 64)
			concurrently(t, len(outcomes), func(i int) {
				idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
				outcome, err := operation.do(t.Context(), instances[i%2], idem)
				wantError(t, "at once", err, nil)
				if idem.Outcome.Replayed {
					replayed.Add(1)
				}
				outcomes[i] = outcome
			})
			wantEqual(t, "how many of 64 were replayed", replayed.Load(), 63)
			for _, outcome := range outcomes {
				wantEqual(t, "the outcome", outcome, outcomes[0])
			}
			wantEqual(t, "what it came to", w.effects(t, s), effectsOfOne(t, s, operation.name))
		})
	})
}

// effectsOfOne returns the results of an operation that runs once, without an idempotency key.
func effectsOfOne(t *testing.T, s *Store, name string) effects {
	t.Helper()
	w, before := newKeyedTenant(t, s), len(outcomesKept(t, s))
	must(w.keyed(name).do(t.Context(), s, nil))(t)
	wantEqual(t, "how many outcomes are kept", len(outcomesKept(t, s)), before)
	return w.effects(t, s)
}

// Failed authentication is no outcome: with a live token the same request happens. A caller without a live token does not get
// an earlier outcome.
func TestAnUnauthorizedCallerHasNoOutcomeAndLearnsOfNone(t *testing.T) {
	onEachKeyed(t, func(o keyedOperation) bool { return !o.byKey }, func(t *testing.T, s *Store, w keyedTenant, operation keyedOperation) {
		ask := func(g Grant, idem *Idempotency) (any, error) {
			w.grant = g
			return w.keyed(operation.name).do(t.Context(), s, idem)
		}
		live, dead := w.grant, w.exchange(t, s)
		mustDo(t, s.RevokeFamily(t.Context(), live.AccessToken, dead.Family))
		idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
		wantUnchanged(t, s, "before", func() {
			wantError(t, "before", errOf(ask(dead, repeatOf(idem))), ErrInvalidToken)
		})
		first := must(ask(live, idem))(t)
		wantEqual(t, "it is a replay", idem.Outcome.Replayed, false)
		wantUnchanged(t, s, "after", func() {
			for _, fingerprint := range [][32]byte{idem.Fingerprint, {9}} {
				refused := &Idempotency{Key: "key", Fingerprint: fingerprint}
				if _, err := ask(dead, refused); err != ErrInvalidToken || refused.Outcome.Replayed {
					t.Errorf("after: %v, replayed %t", err, refused.Outcome.Replayed)
				}
			}
		})
		other := w.exchange(t, s)
		wantEqual(t, "by another token of the agent", must(ask(other, repeatOf(idem)))(t), first)
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		wantUnchanged(t, s, "of a revoked agent", func() {
			wantError(t, "of a revoked agent", errOf(ask(other, repeatOf(idem))), ErrInvalidToken)
		})
	})
}

func TestARotatedKeyLearnsOfNoOutcome(t *testing.T) {
	onEachKeyed(t, func(o keyedOperation) bool { return o.byKey }, func(t *testing.T, s *Store, w keyedTenant, operation keyedOperation) {
		idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
		first := must(operation.do(t.Context(), s, idem))(t)
		must(s.RotateAPIKey(t.Context(), w.key, APIKey{Hash: [32]byte{7}}, 0, nil))(t)
		wantUnchanged(t, s, "by the old key", func() {
			wantError(t, "by the old key", errOf(operation.do(t.Context(), s, repeatOf(idem))), ErrInvalidAPIKey)
		})
		w.key.Hash = [32]byte{7}
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t) // which is not the one that asks
		again := repeatOf(idem)
		wantEqual(t, "by the new key", must(w.keyed(operation.name).do(t.Context(), s, again))(t), first)
		wantEqual(t, "it is a replay", again.Outcome.Replayed, true)
	})
}

func TestEveryCallerHasSeparateIdempotencyKeys(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		foreign := newTenant(t, s, roomy)
		session := func(g Grant) uuid.UUID {
			return must(s.CreateSession(t.Context(), w.key, NewSession{Agent: g.Agent, MaxActions: 100, Lifetime: time.Hour}))(t).ID
		}
		near, far := putAgent(t, s, w.key, NewID(w.agent.ID)), putAgent(t, s, w.key, otherCell(w.agent.ID))
		neighbour := APIKey{Organization: NewID(w.key.Organization), Hash: [32]byte{6}} // whose claims are in the same cell
		must(s.CreateOrganization(t.Context(), "", neighbour, "neighbour", "", nil))(t)
		theirs := must(s.CreateSession(t.Context(), neighbour,
			NewSession{Agent: putAgent(t, s, neighbour, NewRootID()).Agent, MaxActions: 100, Lifetime: time.Hour}))(t)
		for i, caller := range []struct {
			Caller
			session uuid.UUID
		}{
			{byToken(w.exchange(t, s)), w.session.ID},
			{w.byKey(), w.session.ID},
			{byToken(near), session(near)},
			{byToken(far), session(far)},
			{foreign.byKey(), foreign.session.ID},
			{byToken(foreign.exchange(t, s)), foreign.session.ID},
			{Caller{Key: &neighbour}, theirs.ID},
		} {
			idem := &Idempotency{Key: "key", Fingerprint: [32]byte{byte(i)}}
			must(s.Charge(t.Context(), caller.Caller, caller.session, Charge{Count: 1, Idempotency: idem}))(t)
			batch := &Idempotency{Key: "key of a batch", Fingerprint: [32]byte{byte(i)}}
			wantError(t, "a batch", chargeTwice(t.Context(), s, caller.Caller, caller.session, batch), nil)
			if idem.Outcome.Replayed || batch.Outcome.Replayed {
				t.Errorf("caller %d gets the outcome of another", i)
			}
		}
	})
}

// An organization's requests on all its agents meet in its own cell.
func TestAnOrganizationsIdempotencyKeyIsForOneOfItsAgents(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		idem := Idempotency{Key: "key", Fingerprint: [32]byte{1}}
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Idempotency: &idem}))(t)
		var others []uuid.UUID
		for _, id := range []uuid.UUID{NewID(w.agent.ID), otherCell(w.agent.ID)} {
			grant := putAgent(t, s, w.key, id)
			session := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: grant.Agent, MaxActions: 9, Lifetime: time.Hour}))(t)
			others = append(others, session.ID, NewID(id))
		}
		wantUnchanged(t, s, "another agent's", func() {
			for _, session := range others {
				reused := func() *Idempotency { return &Idempotency{Key: "key", Fingerprint: [32]byte{2}} }
				charge, batch := Charge{Count: 1, Idempotency: reused()}, []BatchCharge{{session, Charge{Count: 1}}}
				wantError(t, "Charge", errOf(s.Charge(t.Context(), w.byKey(), session, charge)), ErrIdempotencyKeyReused)
				wantError(t, "ChargeBatch", errOf(s.ChargeBatch(t.Context(), w.byKey(), batch, reused())), ErrIdempotencyKeyReused)
			}
		})
	})
}

// Those that are not an agent's claim name the organization, whose deletion removes them.
func TestOutcomesAreKeptForADay(t *testing.T) {
	onEachKeyed(t, nil, func(t *testing.T, s *Store, w keyedTenant, operation keyedOperation) {
		before := outcomesKept(t, s)
		idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
		must(operation.do(t.Context(), s, idem))(t)
		var kept []string
		for key := range outcomesKept(t, s) {
			if !before[key] {
				kept = append(kept, key)
				wantTTL(t, s, key, 24*time.Hour)
				value, o := must(peek(t, s).Get(t.Context(), key).Result())(t), w.key.Organization
				if ofAgent := strings.HasPrefix(value, "*2:"); !ofAgent && !strings.HasSuffix(value, string(o[:])) && !strings.HasSuffix(value, o.String()) {
					t.Errorf("%s holds %q", key, value)
				}
			}
		}
		wantEqual(t, fmt.Sprintf("how many of %q are kept", kept), len(kept), map[bool]int{false: 1, true: 2}[operation.claimed])
		for _, key := range kept {
			must(peek(t, s).PExpire(t.Context(), key, time.Hour).Result())(t)
		}
		must(operation.do(t.Context(), s, repeatOf(idem)))(t)
		for _, key := range kept { // for a replay does not prolong it
			wantTTL(t, s, key, time.Hour)
		}
		for _, key := range kept {
			must(peek(t, s).Del(t.Context(), key).Result())(t)
		}
		fresh := repeatOf(idem)
		_, _ = operation.do(t.Context(), s, fresh)
		wantEqual(t, "an outcome that is not kept is replayed", fresh.Outcome.Replayed, false)
	})
}

// outcomesKept returns the keys of all outcomes and claims.
func outcomesKept(t *testing.T, s *Store) map[string]bool {
	t.Helper()
	kept := map[string]bool{}
	for _, key := range keysKept(t, s) {
		if strings.HasPrefix(key, s.config.Prefix+"i:") {
			kept[key] = true
		}
	}
	return kept
}

// The reason for idempotency keys: the first reply is lost, and the caller repeats the request.
func TestARepeatedRequestAfterALostReplyHappensOnce(t *testing.T) {
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		eachKeyed(t, s, nil, func(t *testing.T, s *Store, w keyedTenant, operation keyedOperation) {
			loadScripts(t, s)
			want := effectsOfOne(t, s, operation.name)
			idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
			lost := func() error { return errOf(operation.do(WithRequestID(t.Context(), "lost"), s, repeatOf(idem))) }
			wantEqual(t, "how often it was sent", wantLost(t, "the first time", p, operation.script.Keyed.SHA(), lost, ErrOutcomeUnknown), 1)
			must(operation.do(WithRequestID(t.Context(), "again"), s, idem))(t)
			wantEqual(t, "it is a replay", idem.Outcome.Replayed, true)
			wantEqual(t, "the first request", idem.Outcome.FirstRequest, "lost")
			wantEqual(t, "what it came to", w.effects(t, s), want)
		})
	})
}

// A claim that is lost leaves nothing in doubt: nothing has happened before it is answered.
func TestALostClaimOnAnIdempotencyKeyLeavesNothingInDoubt(t *testing.T) {
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		eachKeyed(t, s, func(o keyedOperation) bool { return o.claimed }, func(t *testing.T, s *Store, w keyedTenant, operation keyedOperation) {
			loadScripts(t, s)
			before := w.effects(t, s)
			claim := kernel.ClaimAgentKey
			if operation.byKey {
				claim = kernel.ClaimKey
			}
			if operation.name == "CreateSession" {
				claim = claimSession
			}
			idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
			wantLost(t, "the first time", p, claim.SHA(), func() error { return errOf(operation.do(t.Context(), s, repeatOf(idem))) }, ErrUnavailable)
			if claim == claimSession {
				before.sessions++ // the entry of a session that does not exist
			}
			wantEqual(t, "what it came to", w.effects(t, s), before)
			must(operation.do(t.Context(), s, idem))(t)
			wantEqual(t, "it is a replay", idem.Outcome.Replayed, false)
		})
	})
}

// Due holds are released before; that is not the request's outcome.
func TestHoldsThatAreDueAreNoOutcome(t *testing.T) {
	onEachKeyed(t, nil, func(t *testing.T, s *Store, w keyedTenant, operation keyedOperation) {
		w.letPass(t, s, w.begin(t, s, w.grant.AccessToken, 950))
		idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
		first := must(operation.do(t.Context(), s, idem))(t)
		wantEqual(t, "it is a replay", idem.Outcome.Replayed, false)
		for key := range outcomesKept(t, s) {
			if strings.Contains(must(peek(t, s).Get(t.Context(), key).Result())(t), "holds_due") {
				t.Errorf("%s holds that holds were due", key)
			}
		}
		w.letPass(t, s, w.begin(t, s, w.grant.AccessToken, 50))
		again := repeatOf(idem)
		wantEqual(t, "again", must(operation.do(t.Context(), s, again))(t), first)
		wantEqual(t, "it is a replay", again.Outcome.Replayed, true)
	})
}

// refusedByName is a request that is refused for what it names, and the same corrected.
type refusedByName struct {
	mistyped, corrected func(*Idempotency) error
	want                error
}

// everyRefusedByName returns one for each operation and each caller that can be refused so.
func (w keyedTenant) everyRefusedByName(ctx context.Context, s *Store, foreign tenant, theirs Transaction) map[string]refusedByName {
	create := func(agent uuid.UUID, scopes ...string) func(*Idempotency) error {
		return func(idem *Idempotency) error {
			return errOf(s.CreateSession(ctx, w.key, NewSession{Agent: agent, MaxActions: 1, Lifetime: time.Hour, Scopes: scopes, Idempotency: idem}))
		}
	}
	charge := func(c Caller, session uuid.UUID, scope string) func(*Idempotency) error {
		return func(idem *Idempotency) error {
			return errOf(s.Charge(ctx, c, session, Charge{Count: 1, Scope: scope, Idempotency: idem}))
		}
	}
	rollback := func(c Caller, transaction uuid.UUID) func(*Idempotency) error {
		return func(idem *Idempotency) error {
			return errOf(s.Rollback(ctx, c, transaction, Rollback{Idempotency: idem}))
		}
	}
	commit := func(transaction uuid.UUID) func(*Idempotency) error {
		return func(idem *Idempotency) error {
			return errOf(s.Commit(ctx, w.grant.AccessToken, transaction, Commit{Idempotency: idem}))
		}
	}
	rotate := func(agent uuid.UUID) func(*Idempotency) error {
		return func(idem *Idempotency) error {
			idem.Seal = plainSeal("secret")
			return errOf(s.RotateAgentSecret(ctx, w.key, agent, SecretRotation{Hash: [32]byte{8}}, idem))
		}
	}
	key, token, none, mine := w.byKey(), byToken(w.grant), NewID(w.agent.ID), w.agent.ID
	created, noScope := create(mine), &ScopeError{Scope: "admin"}
	byKey, byAgent := charge(key, w.session.ID, ""), charge(token, w.session.ID, "")
	return map[string]refusedByName{
		"a session of no agent":                   {create(NewRootID(), "read"), created, ErrUnknownAgent},
		"a session of another's agent":            {create(foreign.agent.ID, "read"), created, ErrUnknownAgent},
		"a session with a scope that is not held": {create(mine, "admin"), created, noScope},
		"a charge of nothing, by key":             {charge(key, none, ""), byKey, ErrUnknownSession},
		"a charge of another's session, by key":   {charge(key, foreign.session.ID, ""), byKey, ErrUnknownSession},
		"a charge of nothing, by token":           {charge(token, none, ""), byAgent, ErrUnknownSession},
		"a charge by a scope not held, by key":    {charge(key, w.session.ID, "admin"), byKey, noScope},
		"a charge by a scope not held, by token":  {charge(token, w.session.ID, "admin"), byAgent, noScope},
		"a rollback of nothing, by key":           {rollback(key, none), rollback(key, w.pending.ID), ErrUnknownTransaction},
		"a rollback of another's, by key":         {rollback(key, theirs.ID), rollback(key, w.pending.ID), ErrUnknownTransaction},
		"a rollback of nothing, by token":         {rollback(token, none), rollback(token, w.pending.ID), ErrUnknownTransaction},
		"a commit of nothing":                     {commit(none), commit(w.pending.ID), ErrUnknownTransaction},
		"a rotation of another's secret":          {rotate(foreign.agent.ID), rotate(mine), ErrUnknownAgent},
	}
}

func TestARefusalOfAnUnknownObjectLeavesTheIdempotencyKeyUnused(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		foreign := newTenant(t, s, NewSession{MaxActions: 10})
		theirs := foreign.begin(t, s, foreign.exchange(t, s).AccessToken, 0)
		for name := range (keyedTenant{}).everyRefusedByName(t.Context(), s, foreign, theirs) {
			t.Run(name, func(t *testing.T) {
				test := newKeyedTenant(t, s).everyRefusedByName(t.Context(), s, foreign, theirs)[name]
				mistyped := func() error { return test.mistyped(&Idempotency{Key: "key", Fingerprint: [32]byte{1}}) }
				corrected := func(what string, replays bool) {
					t.Helper()
					idem := &Idempotency{Key: "key", Fingerprint: [32]byte{2}}
					wantError(t, what, test.corrected(idem), nil)
					wantEqual(t, what+" is replayed", idem.Outcome.Replayed, replays)
				}
				for range 2 {
					wantError(t, "mistyped", mistyped(), test.want)
				}
				corrected("corrected", false)
				corrected("corrected, again", true)
				if err := mistyped(); err != ErrIdempotencyKeyReused && !(strings.Contains(name, "by token") || name == "a commit of nothing") {
					t.Errorf("mistyped again, after that: %v", err)
				}
				corrected("corrected, at last", true)
			})
		}
	})
}

// An instance that ends between the claim and the operation leaves a claim of which nothing will come.
func TestAnAbandonedClaimIsReleasedForAnotherRequest(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newKeyedTenant(t, s)
		charge := func(fingerprint byte) error {
			idem := &Idempotency{Key: "key", Fingerprint: [32]byte{fingerprint}}
			return errOf(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Idempotency: idem}))
		}
		place := s.core.ClaimPlace(w.key.Organization, &Idempotency{Key: "key"})
		age := func(by time.Duration) {
			must(peek(t, s).PExpire(t.Context(), place, kernel.OutcomeLifetime-by).Result())(t)
		}
		claim := func(fingerprint byte, at uuid.UUID) {
			abandoned := &Idempotency{Key: "key", Fingerprint: [32]byte{fingerprint}, At: at}
			wantError(t, "the claim", s.core.Authorize(t.Context(), w.byKey(), abandoned), nil)
		}
		claim(1, w.session.ID)
		wantError(t, "while the first may still run", charge(2), ErrIdempotencyKeyReused)
		age(kernel.AbandonedAfter + time.Second)
		wantError(t, "later", charge(2), nil)
		age(kernel.AbandonedAfter + time.Second)
		wantError(t, "against an outcome", charge(3), ErrIdempotencyKeyReused)

		outcome := kernel.Actor{Organization: w.key.Organization}.KeyDigest(&Idempotency{Key: "key"}, "")
		for _, key := range []string{place, s.keys.Outcome(w.session.ID, outcome)} {
			must(peek(t, s).Del(t.Context(), key).Result())(t)
		}
		claim(4, uuid.Nil)
		age(kernel.AbandonedAfter + time.Second)
		wantError(t, "against a batch, of which a part may be done", charge(5), ErrIdempotencyKeyReused)
	})
}

func TestDigestsDistinguishTheirParts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	seen := map[string][]string{}
	for _, parts := range [][]string{
		{}, {""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"ab"}, {"a", "b"}, {"\x00\x01a"}, {long}, {long[:44], long[44:]}, {long + "x"},
	} {
		name := kernel.Digest(parts...)
		if len(name) != 22 || seen[name] != nil {
			t.Errorf("%q and %q are both %q", parts, seen[name], name)
		}
		seen[name] = append(parts, "")
	}
	idem := &Idempotency{Key: "key"}
	agent := kernel.Actor{Organization: uuid.New(), Agent: uuid.New(), Family: kernel.FamilyField(uuid.New())}
	organization := agent
	organization.Family = ""
	names := map[string]bool{}
	for _, act := range []kernel.Actor{agent, organization, {Organization: agent.Agent, Agent: agent.Organization}} {
		for _, part := range []string{"", string(uuid.Nil[:]), string(agent.Agent[:])} {
			names[act.KeyDigest(idem, part)] = true
		}
	}
	wantEqual(t, "how many names 9 keys have", len(names), 9)
}

func TestAnOutcomeThatNoScriptReturnsIsAnError(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]any{
		"nothing":          {},
		"no request":       {nil, "", []any{"ok"}},
		"no reply":         {"r", ""},
		"an empty reply":   {"r", "", []any{}},
		"an unknown reply": {"r", "1", []any{"nonsense"}},
	} {
		wantError(t, name, errOf(new(Idempotency).Read(&reply{Values: values})), errReply)
	}
}

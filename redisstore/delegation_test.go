package redisstore

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/event"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// delegators are a planner with a session, and the session's child, of another agent.
type delegators struct {
	tenant
	planner Grant
	plan    Session
	worker  Agent
	child   Session
}

// newDelegators gives the organization a planner and a worker, who hold these scopes and sessions:delegate.
func newDelegators(t *testing.T, s *Store, w tenant, scopes ...string) delegators {
	t.Helper()
	d := delegators{tenant: w}
	d.planner = d.newAgent(t, s, scopes...)
	d.plan = d.newSessionOf(t, s, NewSession{Agent: d.planner.Agent})
	d.worker.ID = d.newAgent(t, s, scopes...).Agent
	d.child = d.childFor(t, s, d.planner, d.plan.ID, d.worker.ID)
	return d
}

// onDelegators runs a test in parallel with others, on each of these kinds of Redis, on delegators who hold these scopes.
func onDelegators(t *testing.T, on func(*testing.T, Config, func(*testing.T, *Store)), scopes string, test func(*testing.T, *Store, delegators)) {
	t.Helper()
	on(t, Config{}, func(t *testing.T, s *Store) {
		test(t, s, newDelegators(t, s, newTenant(t, s, roomy), strings.Fields(scopes)...))
	})
}

func (d delegators) newAgent(t *testing.T, s *Store, scopes ...string) Grant {
	t.Helper()
	made := must(s.CreateAgent(t.Context(), d.key, Agent{Name: "planner", Scopes: append(slices.Clone(scopes), "sessions:delegate")}, [32]byte{3}, nil))(t)
	return must(s.ExchangeSecret(t.Context(), made.ID, [32]byte{3}, GrantRequest{}))(t)
}

func (d delegators) newSessionOf(t *testing.T, s *Store, n NewSession) Session {
	t.Helper()
	n.MaxActions, n.MaxValue, n.Lifetime, n.MaxLease = 100, 100, time.Hour, time.Minute
	return must(s.CreateSession(t.Context(), d.key, n))(t)
}

// childFor creates a child of the grant's agent's session.
func (d delegators) childFor(t *testing.T, s *Store, by Grant, parent, agent uuid.UUID, scopes ...string) Session {
	t.Helper()
	return must(s.CreateChildSession(t.Context(), byToken(by), NewSession{
		Agent: agent, Parent: parent, MaxActions: 10, MaxValue: 10, Lifetime: 10 * time.Minute, MaxLease: time.Minute,
		Scopes: scopes}))(t)
}

// ask is the planner's request for a token for the child.
func (d delegators) ask(scopes ...string) NewDelegation {
	return NewDelegation{Subject: d.planner.AccessToken, Session: d.child.ID, Scopes: scopes, Held: d.planner.Scopes}
}

// delegate grants the planner a token for the child.
func (d delegators) delegate(t *testing.T, s *Store) *DelegatedToken {
	t.Helper()
	granted := must(s.Delegate(t.Context(), d.ask()))(t)
	return &DelegatedToken{granted.AccessToken, []AccessToken{d.planner.AccessToken}}
}

func errOfCheck(s *Store, t *testing.T, token *DelegatedToken) error {
	return errOf(s.CheckDelegated(t.Context(), token))
}

func TestTheParentsAgentGetsATokenForAChild(t *testing.T) {
	onDelegators(t, onEachRedisAndCluster, "pay read", func(t *testing.T, s *Store, d delegators) {
		defer d.unchanged(t, s, s.keys.Agent(d.worker.ID), s.keys.Session(d.worker.ID, d.child.ID), s.keys.AgentFamilies(d.worker.ID),
			s.keys.Agent(d.planner.Agent), s.keys.Session(d.planner.Agent, d.plan.ID), s.keys.AgentFamilies(d.planner.Agent))()
		first, second := must(s.Delegate(t.Context(), d.ask()))(t), must(s.Delegate(t.Context(), d.ask()))(t)
		for _, granted := range []Delegation{first, second} {
			if granted.Organization != d.key.Organization || granted.Agent != d.worker.ID || kernel.CellOf(granted.Family) != kernel.CellOf(d.worker.ID) {
				t.Errorf("the token is %+v", granted.AccessToken)
			}
			wantEqual(t, "the scopes", granted.Scopes, []string{"pay", "read", "sessions:delegate"})
			if granted.Rest <= 10*time.Minute-10*time.Second || granted.Rest > 10*time.Minute {
				t.Errorf("the session has %s left", granted.Rest)
			}
		}
		if first.Family == second.Family {
			t.Error("two tokens have one family")
		}
		wantError(t, "the token", errOfCheck(s, t, d.delegate(t, s)), nil)
		issued := d.eventsOf(t, s, d.worker.ID)
		last := issued[len(issued)-1]
		if last.Type != "token.issued" || last.Session != d.child.ID || last.Actor != (event.Actor{Type: event.ByAgent, ID: d.planner.Agent}) {
			t.Errorf("the audit trail ends with %+v", last)
		}
	})
}

func TestOnlyTheAgentOfTheParentGetsATokenForAChild(t *testing.T) {
	onDelegators(t, onEachRedisAndCluster, "pay", func(t *testing.T, s *Store, d delegators) {
		stranger := newDelegators(t, s, newTenant(t, s, NewSession{MaxActions: 1}), "pay")
		grandchild := d.childFor(t, s, must(s.ExchangeSecret(t.Context(), d.worker.ID, [32]byte{3}, GrantRequest{}))(t), d.child.ID, d.planner.Agent)
		other := d.newSessionOf(t, s, NewSession{Agent: d.worker.ID})
		ask := func(subject AccessToken, within, session uuid.UUID) error {
			subject.Session = within
			return errOf(s.Delegate(t.Context(), NewDelegation{Subject: subject, Session: session, Held: d.planner.Scopes}))
		}
		worker := must(s.ExchangeSecret(t.Context(), d.worker.ID, [32]byte{3}, GrantRequest{}))(t).AccessToken
		for _, test := range []struct {
			name            string
			subject         AccessToken
			within, session uuid.UUID
			want            error
		}{
			{"its own session", d.planner.AccessToken, uuid.Nil, d.plan.ID, ErrUnknownSession},
			{"another session of the child's agent", d.planner.AccessToken, uuid.Nil, other.ID, ErrUnknownSession},
			{"a grandchild, though of its own", d.planner.AccessToken, uuid.Nil, grandchild.ID, ErrUnknownSession},
			{"a session that does not exist", d.planner.AccessToken, uuid.Nil, NewID(d.worker.ID), ErrUnknownSession},
			{"its child's own agent", worker, uuid.Nil, d.child.ID, ErrUnknownSession},
			{"another organization's agent", stranger.planner.AccessToken, uuid.Nil, d.child.ID, ErrUnknownSession},
			{"another organization's child", d.planner.AccessToken, uuid.Nil, stranger.child.ID, ErrUnknownSession},
			{"a claim to another organization", AccessToken{Organization: stranger.key.Organization, Agent: d.planner.Agent, Family: d.planner.Family}, uuid.Nil, d.child.ID, ErrInvalidToken},
			{"within another session", d.planner.AccessToken, other.ID, d.child.ID, ErrUnknownSession},
			{"within the parent", d.planner.AccessToken, d.plan.ID, d.child.ID, nil},
			{"the child's agent, below it", worker, d.child.ID, grandchild.ID, nil},
		} {
			wantError(t, test.name, ask(test.subject, test.within, test.session), test.want)
		}
	})
}

func TestADelegatedTokenHasNoScopeThatOneOfThemLacks(t *testing.T) {
	onDelegators(t, onEachRedis, "pay read write", func(t *testing.T, s *Store, d delegators) {
		narrow := d.childFor(t, s, d.planner, d.plan.ID, d.worker.ID, "pay", "read")
		none := d.childFor(t, s, d.planner, d.plan.ID, d.worker.ID, []string{}...)
		must(s.ChangeAgent(t.Context(), d.key, d.worker.ID, AgentChanges{Scopes: &[]string{"read", "write"}}))(t)
		for _, test := range []struct {
			name         string
			session      uuid.UUID
			held, wanted []string
			want, lacks  string
		}{
			{"all", d.child.ID, []string{"pay", "read", "write"}, nil, "read write", ""},
			{"of a session that has fewer", narrow.ID, []string{"pay", "read", "write"}, nil, "read", ""},
			{"of a token that has fewer", d.child.ID, []string{"write"}, nil, "write", ""},
			{"of a token that has no other", d.child.ID, nil, nil, "", ""},
			{"one", d.child.ID, []string{"pay", "read", "write"}, []string{"write"}, "write", ""},
			{"one that the agent has lost", d.child.ID, []string{"pay", "read"}, []string{"pay"}, "", "pay"},
			{"one that the session lacks", narrow.ID, []string{"read", "write"}, []string{"read", "write"}, "", "write"},
			{"one that the token lacks", d.child.ID, []string{"read"}, []string{"read", "write"}, "", "write"},
			{"as many as a session without any", none.ID, []string{"read"}, nil, "", ""},
		} {
			n := d.ask(test.wanted...)
			n.Session, n.Held = test.session, slices.Concat(test.held, []string{"sessions:delegate"})
			granted, err := s.Delegate(t.Context(), n)
			if test.lacks != "" {
				wantError(t, test.name, err, &ScopeError{Scope: test.lacks})
				continue
			}
			if got := strings.Join(granted.Scopes, " "); err != nil || got != test.want {
				t.Errorf("%s: %q, %v; want %q", test.name, got, err, test.want)
			}
		}
		n := d.ask("read")
		n.Held = []string{"read"}
		wantError(t, "a token that may not delegate", errOf(s.Delegate(t.Context(), n)), &ScopeError{Scope: "sessions:delegate"})
		must(s.ChangeAgent(t.Context(), d.key, d.planner.Agent, AgentChanges{Scopes: &[]string{"read"}}))(t)
		wantError(t, "an agent that may not delegate any more", errOf(s.Delegate(t.Context(), d.ask())), &ScopeError{Scope: "sessions:delegate"})
	})
}

// over are the ways in which a delegated token dies, or is refused for the time being.
var over = []struct {
	name  string
	do    func(*testing.T, *Store, delegators, *DelegatedToken)
	want  error
	again error // with which another token is refused; nil when it is granted
}{
	{"the end of the child", func(t *testing.T, s *Store, d delegators, _ *DelegatedToken) { d.end(t, s, d.child.ID) }, ErrInvalidToken, &NotActiveError{Completed}},
	{"the end of the parent", func(t *testing.T, s *Store, d delegators, _ *DelegatedToken) { d.end(t, s, d.plan.ID) }, ErrInvalidToken, &NotActiveError{Completed}},
	{"a revoked child's agent", func(t *testing.T, s *Store, d delegators, _ *DelegatedToken) {
		must(s.RevokeAgent(t.Context(), d.key, d.worker.ID))(t)
	}, ErrInvalidToken, &NotActiveError{Revoked}},
	{"a revoked acting agent", func(t *testing.T, s *Store, d delegators, _ *DelegatedToken) {
		must(s.RevokeAgent(t.Context(), d.key, d.planner.Agent))(t)
	}, ErrInvalidToken, ErrInvalidToken},
	{"a deleted acting agent", func(t *testing.T, s *Store, d delegators, _ *DelegatedToken) {
		must(s.RevokeAgent(t.Context(), d.key, d.planner.Agent))(t)
		must(s.DeleteAgent(t.Context(), d.key, d.planner.Agent))(t)
	}, ErrInvalidToken, ErrInvalidToken},
	{"the token with which it was asked for, revoked", func(t *testing.T, s *Store, d delegators, _ *DelegatedToken) {
		wantError(t, "EndFamily", s.EndFamily(t.Context(), d.key, d.planner.Agent, d.planner.Family), nil)
	}, ErrInvalidToken, ErrInvalidToken},
	{"its own revocation", func(t *testing.T, s *Store, d delegators, token *DelegatedToken) {
		for range 2 { // the first answer may have been lost
			own := AccessToken{Organization: token.Organization, Agent: token.Agent}
			wantError(t, "RevokeFamily", s.RevokeFamily(t.Context(), own, token.Family), nil)
		}
	}, ErrInvalidToken, nil},
	{"a suspended child", func(t *testing.T, s *Store, d delegators, _ *DelegatedToken) {
		must(s.SuspendSession(t.Context(), d.key, d.child.ID, ""))(t)
	}, &SessionSuspendedError{}, &SessionSuspendedError{}},
	{"a suspended parent", func(t *testing.T, s *Store, d delegators, _ *DelegatedToken) {
		must(s.SuspendSession(t.Context(), d.key, d.plan.ID, ""))(t)
	}, &SessionSuspendedError{}, &SessionSuspendedError{}},
	{"a suspended child's agent", func(t *testing.T, s *Store, d delegators, _ *DelegatedToken) {
		must(s.SuspendAgent(t.Context(), d.key, d.worker.ID, ""))(t)
	}, &AgentSuspendedError{}, &AgentSuspendedError{}},
	{"a suspended acting agent", func(t *testing.T, s *Store, d delegators, _ *DelegatedToken) {
		must(s.SuspendAgent(t.Context(), d.key, d.planner.Agent, ""))(t)
	}, &AgentSuspendedError{}, &AgentSuspendedError{}},
}

// wantSameKind compares errors, of a suspension only their type: the time is Redis's.
func wantSameKind(t *testing.T, what string, err, want error) {
	t.Helper()
	if !kernel.IsSuspended(want) || reflect.TypeOf(err) != reflect.TypeOf(want) {
		wantEqual(t, what, err, want)
	}
}

// In a chain each agent stands for the one before it, and each of them can break it.
func TestADelegatedTokenDiesAtOnceAtEveryInstanceWithTheChainBelowIt(t *testing.T) {
	t.Parallel()
	for _, test := range over {
		t.Run(test.name, func(t *testing.T) {
			onDelegators(t, onEachRedisAndCluster, "pay", func(t *testing.T, s *Store, d delegators) {
				token, last := d.delegate(t, s), d.newAgent(t, s, "pay")
				below := d.childFor(t, s, Grant{AccessToken: token.AccessToken}, d.child.ID, last.Agent)
				n := NewDelegation{Subject: token.AccessToken, Session: below.ID, Held: []string{"pay", "sessions:delegate"}}
				chained := &DelegatedToken{must(s.Delegate(t.Context(), n))(t).AccessToken, append([]AccessToken{token.AccessToken}, token.Actors...)}
				instances := []*Store{s, anotherInstance(t, s)}
				for _, instance := range instances {
					wantError(t, "before", errOfCheck(instance, t, token), nil)
					wantError(t, "the chain, before", errOfCheck(instance, t, chained), nil)
				}
				test.do(t, s, d, token)
				for _, instance := range instances {
					wantSameKind(t, "the token", errOfCheck(instance, t, token), test.want)
					wantSameKind(t, "the chain", errOfCheck(instance, t, chained), test.want)
					wantSameKind(t, "another token", errOf(instance.Delegate(t.Context(), d.ask())), test.again)
				}
			})
		})
	}
}

func TestADelegatedTokenDiesWhenItsSessionExpires(t *testing.T) {
	t.Parallel()
	onDelegators(t, onRealRedis, "pay", func(t *testing.T, s *Store, d delegators) {
		token := d.delegate(t, s)
		must(s.ChangeLimits(t.Context(), d.key, d.child.ID, NewLimits{Lifetime: new(10 * time.Millisecond)}))(t)
		eventually(t, "it is dead", func() bool { return errOfCheck(s, t, token) == ErrInvalidToken })
		wantError(t, "another token", errOf(s.Delegate(t.Context(), d.ask())), &NotActiveError{Expired})
	})
}

func TestADelegatedTokenIsGoodAgainAfterAResumption(t *testing.T) {
	onDelegators(t, onEachRedis, "pay", func(t *testing.T, s *Store, d delegators) {
		token := d.delegate(t, s)
		must(s.SuspendSession(t.Context(), d.key, d.plan.ID, ""))(t)
		must(s.ResumeSession(t.Context(), d.key, d.plan.ID, ""))(t)
		wantError(t, "after the tree's resumption", errOfCheck(s, t, token), nil)
	})
}

func TestANarrowedActingAgentNarrowsItsDelegatedTokens(t *testing.T) {
	onDelegators(t, onEachRedis, "pay read write", func(t *testing.T, s *Store, d delegators) {
		token := d.delegate(t, s)
		must(s.ChangeAgent(t.Context(), d.key, d.planner.Agent, AgentChanges{Scopes: &[]string{"read", "write", "sessions:delegate"}}))(t)
		must(s.ChangeAgent(t.Context(), d.key, d.worker.ID, AgentChanges{Scopes: &[]string{"pay", "read"}}))(t)
		scopes := []string{"pay", "read", "write"}
		for _, left := range must(s.CheckDelegated(t.Context(), token))(t) {
			scopes = left.Of(scopes)
		}
		wantEqual(t, "the scopes that are left", scopes, []string{"read"})
		must(s.ChangeAgent(t.Context(), d.key, d.planner.Agent, AgentChanges{Scopes: &[]string{"read", "write"}}))(t)
		wantError(t, "CheckDelegated", errOfCheck(s, t, token), ErrInvalidToken)
	})
}

func TestADelegatedTokenReachesOnlyWhatBelongsToItsSession(t *testing.T) {
	onDelegators(t, onEachRedis, "pay", func(t *testing.T, s *Store, d delegators) {
		token := d.delegate(t, s)
		other := d.newSessionOf(t, s, NewSession{Agent: d.worker.ID})
		begin := func(session uuid.UUID) uuid.UUID {
			return must(s.Begin(t.Context(), token.AccessToken, NewTransaction{Session: session, ActionType: "pay", PreState: "{}", Lifetime: time.Minute}))(t).ID
		}
		lease := func(session uuid.UUID) uuid.UUID {
			return must(s.GrantLease(t.Context(), d.byKey(), session, NewLease{MaxActions: 1, Lifetime: time.Second}))(t).ID
		}
		for name, test := range map[string]struct {
			transaction, lease     uuid.UUID
			ofTransaction, ofLease error
		}{
			"in its session": {begin(d.child.ID), lease(d.child.ID), nil, nil},
			"in another":     {begin(other.ID), lease(other.ID), ErrUnknownTransaction, ErrUnknownLease},
			"in none":        {begin(uuid.Nil), NewID(d.worker.ID), ErrUnknownTransaction, ErrUnknownLease},
		} {
			wantError(t, "a transaction "+name, s.CheckTransaction(t.Context(), token, test.transaction), test.ofTransaction)
			wantError(t, "a lease "+name, s.CheckLease(t.Context(), token, test.lease), test.ofLease)
		}
	})
}

func TestDelegationsAreGrantedAtTheRateOfTheirAgent(t *testing.T) {
	onEachRedis(t, Config{Rates: Rates{Agent: 1}}, func(t *testing.T, s *Store) {
		d := newDelegators(t, s, newTenant(t, s, NewSession{MaxActions: 1}), "pay")
		var err error
		granted := 0
		for ; err == nil && granted < 2*kernel.BurstTime; granted++ {
			err = errOf(s.Delegate(t.Context(), d.ask()))
		}
		if rate := new(RateError); !errors.As(err, &rate) || granted > kernel.BurstTime+1 {
			t.Errorf("the %dth: %v", granted, err)
		}
	})
}

// Marks of delegated tokens that were revoked go away as those of others do: by the next ones that are granted.
func TestDelegationsDropMarksThatHaveLapsed(t *testing.T) {
	onDelegators(t, onEachRedis, "pay", func(t *testing.T, s *Store, d delegators) {
		key := s.keys.Agent(d.worker.ID)
		kept := must(peek(t, s).HLen(t.Context(), key).Result())(t)
		for range 20 {
			must(peek(t, s).HSet(t.Context(), key, kernel.FamilyField(NewID(d.worker.ID)), time.Now().Add(-time.Minute).UnixMilli()).Result())(t)
		}
		eventually(t, "most are gone", func() bool {
			d.delegate(t, s)
			return must(peek(t, s).HLen(t.Context(), key).Result())(t) <= max(kept, 15)
		})
	})
}

func TestWhatAnAgentDoesWithADelegatedTokenNamesItInTheAuditTrail(t *testing.T) {
	onDelegators(t, onEachRedis, "pay", func(t *testing.T, s *Store, d delegators) {
		token := d.delegate(t, s)
		must(s.EndSession(WithActor(t.Context(), "request-1", d.planner.Agent), Caller{Token: &token.AccessToken}, d.child.ID))(t)
		for _, e := range d.eventsOf(t, s, d.worker.ID) {
			if e.Type == "session.ended" && (e.Actor != (event.Actor{Type: event.ByAgent, ID: d.planner.Agent}) || e.Request != "request-1") {
				t.Errorf("%+v", e)
			}
		}
	})
}

// asDelegated is a delegated token for the tenant's session, with which the planner acts.
func (w tenant) asDelegated(g Grant) *DelegatedToken {
	g.Session = w.session.ID
	return &DelegatedToken{g.AccessToken, []AccessToken{w.delegation.Subject}}
}

// Who acts in a session must not take an idempotency key away from the session's agent, nor see what came of it.
func TestIdempotencyKeysOfDelegatedTokensAreTheSessionsOwn(t *testing.T) {
	onDelegators(t, onEachRedis, "pay", func(t *testing.T, s *Store, d delegators) {
		worker := must(s.ExchangeSecret(t.Context(), d.worker.ID, [32]byte{3}, GrantRequest{}))(t)
		charge := func(token *AccessToken, value int64) Idempotency {
			idem := &Idempotency{Key: "step-1", Fingerprint: [32]byte{byte(value)}}
			must(s.Charge(t.Context(), Caller{Token: token}, d.child.ID, Charge{Count: 1, Value: money.MicroUSD(value), Idempotency: idem}))(t)
			return *idem
		}
		first, renewed := d.delegate(t, s), d.delegate(t, s)
		for _, step := range []struct {
			name     string
			token    *AccessToken
			value    int64
			replayed bool
		}{
			{"by the session's agent", &worker.AccessToken, 1, false},
			{"with a delegated token", &first.AccessToken, 2, false},
			{"with another one for the session", &renewed.AccessToken, 2, true},
			{"by the session's agent again", &worker.AccessToken, 1, true},
		} {
			wantEqual(t, "replayed "+step.name, charge(step.token, step.value).Outcome.Replayed, step.replayed)
		}
	})
}

// A check without an answer lets nothing through. Of the others script_test.go proves so.
func TestADelegatedTokenWhoseCheckIsLostIsRefused(t *testing.T) {
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		d := newDelegators(t, s, newTenant(t, s, NewSession{MaxActions: 1}), "pay")
		token := d.delegate(t, s)
		loadScripts(t, s)
		for _, check := range []struct {
			name   string
			script *script
			do     func() error
		}{
			{"of who acts", kernel.CheckToken, func() error { return errOfCheck(s, t, token) }},
			{"of the parent", checkDelegator, func() error { return errOf(s.Delegate(t.Context(), d.ask())) }},
		} {
			p.LoseReplies(check.script.SHA(), 100)
			if err := check.do(); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("the check %s: %v", check.name, err)
			}
			p.LoseReplies("", 0)
			wantError(t, "the check "+check.name+", again", check.do(), nil)
		}
	})
}

func TestADelegatedTokenIsForTheAudiencesOfAllItsAgents(t *testing.T) {
	onDelegators(t, onEachRedisAndCluster, "pay", func(t *testing.T, s *Store, d delegators) {
		third := d.newAgent(t, s, "pay")
		list := func(agent uuid.UUID, audiences ...string) {
			must(s.ChangeAgent(t.Context(), d.key, agent, AgentChanges{Audiences: &audiences}))(t)
		}
		ask := func(audience ...string) error {
			n := d.ask()
			n.Audience, n.Actors = audience, []uuid.UUID{third.Agent}
			return errOf(s.Delegate(t.Context(), n))
		}
		wantError(t, "any https URI", ask(mail), nil)
		wantError(t, "a scheme that no agent lists", ask(urn), &AudienceError{Audience: urn})
		for _, agent := range []uuid.UUID{d.planner.Agent, d.worker.ID, third.Agent} {
			wantError(t, "before", ask(mail, Self), nil)
			list(agent, []string{}...)
			wantError(t, "an agent whose tokens are for the issuer alone", ask(Self, mail), &AudienceError{Audience: mail})
			wantError(t, "the issuer", ask(Self), nil)
			list(agent, mail, urn)
		}
		wantError(t, "what all list", ask(mail, urn, Self), nil)
	})
}

func TestADelegatedTokenIsBoundToTheKeyOfItsProof(t *testing.T) {
	onDelegators(t, onEachRedis, "pay", func(t *testing.T, s *Store, d delegators) {
		ask := func(p *Proof) (Delegation, error) {
			n := d.ask()
			n.Proof = p
			return s.Delegate(t.Context(), n)
		}
		unbound := d.delegate(t, s)
		must(s.ChangeAgent(t.Context(), d.key, d.worker.ID, AgentChanges{DPoPRequired: new(true)}))(t)
		wantError(t, "a token that was issued before", errOfCheck(s, t, unbound), ErrInvalidToken)
		wantError(t, "without a proof", errOf(ask(nil)), ErrProofRequired)
		granted := must(ask(&Proof{Key: [32]byte{1}}))(t)
		wantEqual(t, "the token is bound", granted.Bound, true)
		bound := &DelegatedToken{granted.AccessToken, []AccessToken{d.planner.AccessToken}}
		wantError(t, "the bound token", errOfCheck(s, t, bound), nil)
		must(s.ChangeAgent(t.Context(), d.key, d.planner.Agent, AgentChanges{DPoPRequired: new(true)}))(t)
		wantError(t, "an acting agent whose own token was not bound", errOfCheck(s, t, bound), ErrInvalidToken)
	})
}

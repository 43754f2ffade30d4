package redisstore

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/test/suite"
)

// assertion returns an assertion of the tenant's agent, verified with the keys that it had first.
func (w tenant) assertion(id byte) ClientAssertion {
	return ClientAssertion{Agent: w.agent.ID, Keys: ClientKeys{Organization: w.key.Organization}, ID: [16]byte{id}, Left: time.Minute}
}

// usesOfAssertions are the operations that use up an assertion.
func usesOfAssertions(s *Store) map[string]func(context.Context, ClientAssertion) error {
	return map[string]func(context.Context, ClientAssertion) error{
		"an exchange": func(ctx context.Context, a ClientAssertion) error {
			return errOf(s.ExchangeAssertion(ctx, a, GrantRequest{}))
		},
		"an exchange with a proof": func(ctx context.Context, a ClientAssertion) error {
			return errOf(s.ExchangeAssertion(ctx, a, GrantRequest{Proof: newProof(1)}))
		},
		"a check": s.CheckAssertion,
	}
}

func TestAnAssertionIsUsedOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, neighbour := newTenant(t, s, NewSession{}), newTenant(t, s, NewSession{})
		uses := usesOfAssertions(s)
		id := byte(0)
		for name, use := range uses {
			id++
			wantError(t, name, use(t.Context(), w.assertion(id)), nil)
			for again, reuse := range uses {
				wantError(t, again+" after "+name, reuse(t.Context(), w.assertion(id)), ErrInvalidCredentials)
			}
			wantError(t, "a neighbour's with the same id", use(t.Context(), neighbour.assertion(id)), nil)
		}
	})
}

func TestAnAssertionOpensAFamilyAsASecretDoes(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{})
		asked := GrantRequest{Scopes: []string{"read"}, Audience: []string{"https://a.example"}, Proof: newProof(1)}
		bySecret := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, asked))(t)
		asked.Proof = newProof(1)
		grant := must(s.ExchangeAssertion(t.Context(), w.assertion(1), asked))(t)
		refreshed := must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{Proof: newProof(1)}))(t)
		if refreshed.Family != grant.Family || !reflect.DeepEqual(refreshed.Scopes, grant.Scopes) || !reflect.DeepEqual(refreshed.Audience, grant.Audience) {
			t.Errorf("refreshed %+v", refreshed)
		}
		bySecret.Family = grant.Family
		if !reflect.DeepEqual(grant, bySecret) {
			t.Errorf("granted %+v, a secret %+v", grant, bySecret)
		}
	})
}

// What is refused leaves everything as it is, so that strangers cannot fill an agent's assertions.
func TestARefusalUsesUpNoAssertion(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{})
		must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, AgentChanges{JWKS: new(`{"keys":[]}`), Audiences: &[]string{}}))(t)
		keys := must(s.ClientKeys(t.Context(), w.agent.ID))(t)
		a := w.assertion(1)
		a.Keys = keys
		before := w.contents(t, s)
		unknown := a
		unknown.Agent = NewRootID()
		for name, test := range map[string]struct{ err, want error }{
			"the keys before":  {errOf(s.ExchangeAssertion(t.Context(), w.assertion(1), GrantRequest{})), ErrChangedMeanwhile},
			"before, a check":  {s.CheckAssertion(t.Context(), w.assertion(1)), ErrChangedMeanwhile},
			"an unknown agent": {errOf(s.ExchangeAssertion(t.Context(), unknown, GrantRequest{})), ErrInvalidCredentials},
			"unknown, a check": {s.CheckAssertion(t.Context(), unknown), ErrInvalidCredentials},
		} {
			wantError(t, name, test.err, test.want)
		}
		var scope *ScopeError
		if _, err := s.ExchangeAssertion(t.Context(), a, GrantRequest{Scopes: []string{"admin"}}); !errors.As(err, &scope) {
			t.Errorf("a scope that the agent lacks: %v", err)
		}
		var audience *AudienceError
		if _, err := s.ExchangeAssertion(t.Context(), a, GrantRequest{Audience: []string{"https://a.example"}}); !errors.As(err, &audience) {
			t.Errorf("an audience that the agent lacks: %v", err)
		}
		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
		wantError(t, "the assertion", s.CheckAssertion(t.Context(), a), nil)
	})
}

func TestKeysThatAnAgentNoLongerHasAuthenticateNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{})
		change := func(c AgentChanges) { must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, c))(t) }
		_, err := s.ClientKeys(t.Context(), w.agent.ID)
		wantError(t, "without keys", err, ErrInvalidCredentials)
		change(AgentChanges{JWKS: new(`{"keys":[1]}`)})
		id := byte(0)
		for name, changes := range map[string]AgentChanges{
			"other keys": {JWKS: new(`{"keys":[2]}`)}, "keys elsewhere": {JWKSURI: new("https://a.example/")}, "no keys": {JWKS: new(""), JWKSURI: new("")},
		} {
			change(AgentChanges{JWKS: new(`{"keys":[1]}`)})
			a := w.assertion(1)
			a.Keys = must(s.ClientKeys(t.Context(), w.agent.ID))(t)
			change(AgentChanges{Name: new(name)})
			id++
			a.ID[0] = id
			wantError(t, "another name", s.CheckAssertion(t.Context(), a), nil)
			change(changes)
			a.ID[0] += 100
			wantError(t, name, s.CheckAssertion(t.Context(), a), ErrChangedMeanwhile)
			change(AgentChanges{JWKS: new(`{"keys":[1]}`)})
			wantError(t, name+", and back", s.CheckAssertion(t.Context(), a), ErrChangedMeanwhile)
		}
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		_, err = s.ClientKeys(t.Context(), w.agent.ID)
		wantError(t, "revoked", err, ErrInvalidCredentials)
		for name, use := range usesOfAssertions(s) {
			wantError(t, name+" of a revoked agent", use(t.Context(), w.assertion(200)), ErrInvalidCredentials)
		}
		_, err = s.ClientKeys(t.Context(), NewRootID())
		wantError(t, "unknown", err, ErrInvalidCredentials)
	})
}

func TestASuspendedAgentsAssertionOpensNoFamily(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{})
		must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, ""))(t)
		var suspended *AgentSuspendedError
		if _, err := s.ExchangeAssertion(t.Context(), w.assertion(1), GrantRequest{}); !errors.As(err, &suspended) {
			t.Errorf("%v", err)
		}
		wantError(t, "a check", s.CheckAssertion(t.Context(), w.assertion(1)), nil) // it may revoke its tokens
		must(s.Suspend(t.Context(), w.key.Organization))(t)
		w.readSuspensions(t, s)
		id := byte(2)
		for name, use := range usesOfAssertions(s) {
			id++
			wantError(t, name+" of a suspended organization", use(t.Context(), w.assertion(id)), ErrOrganizationSuspended)
		}
	})
}

func TestAnAgentHasABoundNumberOfAssertions(t *testing.T) {
	t.Parallel()
	const most = 10000
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, neighbour := newTenant(t, s, NewSession{}), newTenant(t, s, NewSession{})
		now := must(peek(t, s).Time(t.Context()).Result())(t)
		fill := func(from, to int, until time.Time) {
			t.Helper()
			for at := from; at < to; at += 1000 {
				members := make([]redis.Z, 1000)
				for i := range members {
					members[i] = redis.Z{Score: float64(until.UnixMilli()), Member: "used " + string(rune(at+i))}
				}
				must(peek(t, s).ZAdd(t.Context(), s.keys.Assertions(w.agent.ID), members...).Result())(t)
			}
		}
		fill(20_000, 20_000+most, now.Add(time.Hour))
		for name, use := range usesOfAssertions(s) {
			wantError(t, name+" beyond", use(t.Context(), w.assertion(1)), ErrManyAssertions)
			wantError(t, name+" of a neighbour", use(t.Context(), neighbour.assertion(name[len(name)-1])), nil)
		}
		must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{}))(t)
		fill(20_000, 20_000+most, now.Add(-time.Minute)) // all of them have expired
		wantError(t, "after they expired", s.CheckAssertion(t.Context(), w.assertion(1)), nil)
		left := must(peek(t, s).ZCard(t.Context(), s.keys.Assertions(w.agent.ID)).Result())(t)
		for i := range 20 {
			wantError(t, "another", s.CheckAssertion(t.Context(), w.assertion(byte(100+i))), nil)
		}
		if now := must(peek(t, s).ZCard(t.Context(), s.keys.Assertions(w.agent.ID)).Result())(t); now > left-20*15 {
			t.Errorf("%d are kept, %d were", now, left)
		}
	})
}

func TestUsedAssertionsEndWithTheirLongestLife(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{})
		for i, left := range []time.Duration{time.Minute, 10 * time.Minute, time.Second} {
			a := w.assertion(byte(i))
			a.Left = left
			wantError(t, "an assertion", s.CheckAssertion(t.Context(), a), nil)
		}
		ttl := must(peek(t, s).PTTL(t.Context(), s.keys.Assertions(w.agent.ID)).Result())(t)
		if ttl > 10*time.Minute || ttl < 9*time.Minute {
			t.Errorf("they are kept for %s", ttl)
		}
	})
}

func TestOneAssertionAtTwoInstancesAtOncePassesOnce(t *testing.T) {
	t.Parallel()
	rounds := 50
	if suite.Long {
		rounds = 1000
	}
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{})
		instances := []*Store{s, anotherInstance(t, s)}
		for round := range rounds {
			var passed, refused atomic.Int32
			var all sync.WaitGroup
			a := w.assertion(byte(round))
			a.ID[1] = byte(round >> 8)
			for _, instance := range instances {
				for name, use := range usesOfAssertions(instance) {
					all.Go(func() {
						switch err := use(context.Background(), a); {
						case err == nil:
							passed.Add(1)
						case errors.Is(err, ErrInvalidCredentials):
							refused.Add(1)
						default:
							t.Errorf("%s: %v", name, err)
						}
					})
				}
			}
			all.Wait()
			if passed.Load() != 1 || refused.Load() != 5 {
				t.Fatalf("%d passed and %d were refused", passed.Load(), refused.Load())
			}
		}
	})
}

package redisstore

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/redisstore/internal/kernel"
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
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		neighbour := newTenant(t, s, NewSession{})
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
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		asked := GrantRequest{Scopes: []string{"read"}, Audience: []string{"https://a.example"}, Proof: newProof(1)}
		bySecret := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, asked))(t)
		asked.Proof = newProof(1)
		grant := must(s.ExchangeAssertion(t.Context(), w.assertion(1), asked))(t)
		refreshed := must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{Proof: newProof(1)}))(t)
		if refreshed.Family != grant.Family || !reflect.DeepEqual(refreshed.Scopes, grant.Scopes) || !reflect.DeepEqual(refreshed.Audience, grant.Audience) {
			t.Errorf("refreshed %+v", refreshed)
		}
		bySecret.Family = grant.Family
		wantEqual(t, "the grant, beside that of a secret", grant, bySecret)
	})
}

// What is refused leaves everything as it is, so that strangers cannot fill an agent's assertions.
func TestARefusalUsesUpNoAssertion(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, AgentChanges{JWKS: new(`{"keys":[]}`), Audiences: &[]string{}}))(t)
		a := w.assertion(1)
		a.Keys = must(s.ClientKeys(t.Context(), w.agent.ID))(t)
		unchanged := w.unchanged(t, s)
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
		wantError(t, "a scope", errOf(s.ExchangeAssertion(t.Context(), a, GrantRequest{Scopes: []string{"admin"}})), &ScopeError{Scope: "admin"})
		wantError(t, "an audience", errOf(s.ExchangeAssertion(t.Context(), a, audiences(mail))), &AudienceError{Audience: mail})
		unchanged()
		wantError(t, "the assertion", s.CheckAssertion(t.Context(), a), nil)
	})
}

func TestKeysThatAnAgentNoLongerHasAuthenticateNothing(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		change := func(c AgentChanges) { must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, c))(t) }
		wantError(t, "without keys", errOf(s.ClientKeys(t.Context(), w.agent.ID)), ErrInvalidCredentials)
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
		wantError(t, "revoked", errOf(s.ClientKeys(t.Context(), w.agent.ID)), ErrInvalidCredentials)
		for name, use := range usesOfAssertions(s) {
			wantError(t, name+" of a revoked agent", use(t.Context(), w.assertion(200)), ErrInvalidCredentials)
		}
		wantError(t, "unknown", errOf(s.ClientKeys(t.Context(), NewRootID())), ErrInvalidCredentials)
	})
}

func TestASuspendedAgentsAssertionOpensNoFamily(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, ""))(t)
		if err := errOf(s.ExchangeAssertion(t.Context(), w.assertion(1), GrantRequest{})); !kernel.IsSuspended(err) {
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
	const most = 10000
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		neighbour := newTenant(t, s, NewSession{})
		now := must(peek(t, s).Time(t.Context()).Result())(t)
		fill := func(until time.Time) {
			t.Helper()
			members := make([]redis.Z, most)
			for i := range members {
				members[i] = redis.Z{Score: float64(until.UnixMilli()), Member: fmt.Sprint("used ", i)}
			}
			must(peek(t, s).ZAdd(t.Context(), s.keys.Assertions(w.agent.ID), members...).Result())(t)
		}
		fill(now.Add(time.Hour))
		for name, use := range usesOfAssertions(s) {
			wantError(t, name+" beyond", use(t.Context(), w.assertion(1)), ErrManyAssertions)
			wantError(t, name+" of a neighbour", use(t.Context(), neighbour.assertion(name[len(name)-1])), nil)
		}
		must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{}))(t)
		fill(now.Add(-time.Minute)) // all of them have expired
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
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		for i, left := range []time.Duration{time.Minute, 10 * time.Minute, time.Second} {
			a := w.assertion(byte(i))
			a.Left = left
			wantError(t, "an assertion", s.CheckAssertion(t.Context(), a), nil)
		}
		wantTTL(t, s, s.keys.Assertions(w.agent.ID), 10*time.Minute)
	})
}

func TestOneAssertionAtTwoInstancesAtOncePassesOnce(t *testing.T) {
	t.Parallel()
	rounds := 50
	if suite.Long {
		rounds = 1000
	}
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, roomy)
		instances := []*Store{s, anotherInstance(t, s)}
		wantOneToPass(t, rounds, ErrInvalidCredentials, func(round int) (calls []func() error) {
			a := w.assertion(byte(round))
			a.ID[1] = byte(round >> 8)
			for _, instance := range instances {
				for _, use := range usesOfAssertions(instance) {
					calls = append(calls, func() error { return use(context.Background(), a) })
				}
			}
			return calls
		})
	})
}

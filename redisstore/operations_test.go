package redisstore

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/lua"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// operation is one thing that the store does, and the last script it runs for it.
type operation struct {
	name   string
	script *script
	do     func(context.Context, *Store) error
}

// everyOperation returns all that can be done to a tenant, by token where that is possible, with a transaction that is
// pending in its session, and a lease of it; no more than one of them is to be done to the same tenant.
func everyOperation(w tenant, g Grant, pending Transaction, l Lease) (all []operation) {
	of := target{agent: w.agent.ID, session: w.session.ID, family: g.Family, transaction: pending.ID, lease: l.ID, request: w.asked, key: w.other,
		sessionKey: w.opener}
	calls := func(ctx context.Context, s *Store) []call {
		return slices.Concat(callsByKey(ctx, s, w.key, of), callsByEither(ctx, s, byToken(g), of), furtherByKey(ctx, s, w), withKeys(ctx, s, w, g, of),
			ofTokens(ctx, s, w, g, of))
	}
	for i, one := range calls(context.Background(), nil) {
		if one.script != nil {
			all = append(all, operation{one.name, one.script, func(ctx context.Context, s *Store) error { return errOf(calls(ctx, s)[i].do()) }})
		}
	}
	return all
}

// furtherByKey are operations by an API key and by the operator that run other scripts than those of asked_test.go.
func furtherByKey(ctx context.Context, s *Store, w tenant) []call {
	n := NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour}
	return []call{
		{"CreateOrganization", createOrganization.Script, func() (any, error) {
			return s.CreateOrganization(ctx, "", APIKey{Organization: NewRootID()}, "acme", "", nil)
		}},
		{"Suspend", suspendOrganization, func() (any, error) { return s.Suspend(ctx, w.key.Organization) }},
		{"ReplaceAPIKey", replaceAPIKey, func() (any, error) {
			return s.ReplaceAPIKey(ctx, APIKey{Organization: w.key.Organization, Hash: [32]byte{4}}, time.Hour)
		}},
		{"CreateAgent, its index", indexAgent, func() (any, error) { return s.CreateAgent(ctx, w.key, Agent{Name: "scout"}, [32]byte{3}, nil) }},
		{"CreateSession, its index", indexSession, func() (any, error) { return s.CreateSession(ctx, w.key, n) }},
		{"Sessions of the organization", listSessions, func() (any, error) { return s.Sessions(ctx, w.byKey(), Query{Limit: 1}) }},
		{"Active sessions of the organization", listActive, func() (any, error) {
			return s.Sessions(ctx, w.byKey(), Query{Limit: 1, Status: Active})
		}},
		{"Transactions of the organization", kernel.ListOrganization, func() (any, error) {
			return s.Transactions(ctx, w.byKey(), Query{Limit: 1})
		}},
		{"EndFamily of a token without a refresh token", endFamily, func() (any, error) {
			return nil, s.EndFamily(ctx, w.key, w.agent.ID, w.tokenID(0))
		}},
		{"IssuerFor", findTrustedIssuer, func() (any, error) { return firstOf(s.IssuerFor(ctx, w.agent.ID, w.trusted.Settings.Issuer)) }},
	}
}

// withKeys are operations with idempotency keys, and the claims of these.
func withKeys(ctx context.Context, s *Store, w tenant, g Grant, of target) []call {
	caller, idem := byToken(g), func() *Idempotency { return &Idempotency{Key: "key"} }
	sealed := func() *Idempotency { return sealedKey("secret", "credential") }
	charge := func(c Caller) func() (any, error) {
		return func() (any, error) {
			return s.Charge(ctx, c, of.session, Charge{Count: 1, Value: 1, Idempotency: idem()})
		}
	}
	batch := func() (any, error) { return asOne(batchOfTwo(ctx, s, caller, of.session, idem())) }
	session := func() (any, error) {
		return s.CreateSession(ctx, w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour, Idempotency: idem()})
	}
	agent := func() (any, error) { return s.CreateAgent(ctx, w.key, Agent{Name: "scout"}, [32]byte{3}, sealed()) }
	lease := NewLease{MaxActions: 1, Lifetime: time.Minute}
	return []call{
		{"Charge with an idempotency key", chargeSession.Keyed, charge(caller)},
		{"Charge with an idempotency key, its claim", kernel.ClaimKey, charge(w.byKey())},
		{"ChargeBatch with an idempotency key", chargeBatch.Keyed, batch},
		{"ChargeBatch with an idempotency key, its claim", kernel.ClaimAgentKey, batch},
		{"CreateSession with an idempotency key", createSession.Keyed, session},
		{"CreateSession with an idempotency key, its claim", claimSession, session},
		{"CreateAgent with an idempotency key", createAgent.Keyed, agent},
		{"CreateAgent with an idempotency key, its claim", claimAgent, agent},
		{"CreateAPIKey with an idempotency key", createAPIKey.Keyed, func() (any, error) {
			return s.CreateAPIKey(ctx, w.key, APIKey{Hash: [32]byte{3}}, NewAPIKey{Name: "n", Role: Viewer, Idempotency: sealed()})
		}},
		{"CreateTrustedIssuer with an idempotency key", putTrustedIssuer.Keyed, func() (any, error) {
			return s.CreateTrustedIssuer(ctx, w.key, w.trusting("https://issuer.example"), &Idempotency{Key: longKey})
		}},
		{"Begin with an idempotency key", beginSessionTransaction.Keyed, func() (any, error) {
			n := w.beginning(1)
			n.Idempotency = idem()
			return s.Begin(ctx, g.AccessToken, n)
		}},
		{"Commit with an idempotency key", commitTransaction.Keyed, func() (any, error) {
			return s.Commit(ctx, g.AccessToken, of.transaction, Commit{Idempotency: idem()})
		}},
		{"Rollback with an idempotency key", rollbackTransaction.Keyed, func() (any, error) {
			return s.Rollback(ctx, caller, of.transaction, Rollback{Idempotency: idem()})
		}},
		{"GrantLease with an idempotency key", grantLease.Keyed, func() (any, error) {
			return s.GrantLease(ctx, caller, of.session, NewLease{MaxActions: 1, Lifetime: time.Minute, Idempotency: idem()})
		}},
		{"SettleLease with an idempotency key", settleLease.Keyed, func() (any, error) {
			return s.SettleLease(ctx, caller, of.lease, NewSettlement{ActionCount: 1, Renew: &lease, Idempotency: idem()})
		}},
		{"RequestMore with an idempotency key", requestMore.Keyed, func() (any, error) {
			return s.RequestMore(ctx, g.AccessToken, of.session, NewSessionRequest{AddActions: 1, Reason: "more", Idempotency: idem()})
		}},
	}
}

// ofTokens are the operations that take a credential of an agent and no API key.
func ofTokens(ctx context.Context, s *Store, w tenant, g Grant, of target) []call {
	var none GrantRequest
	proven := func() GrantRequest { return GrantRequest{Proof: newProof(1)} }
	byIssuer := func(n GrantRequest) (Grant, error) {
		return s.GrantByIssuer(ctx, w.key.Organization, w.agent.ID, w.trusted, n)
	}
	return []call{
		{"ExchangeSecret", exchangeSecret.Script, func() (any, error) { return s.ExchangeSecret(ctx, w.agent.ID, w.secret, none) }},
		{"ExchangeSecret with a proof", exchangeSecret.Proven, func() (any, error) { return s.ExchangeSecret(ctx, w.agent.ID, w.secret, proven()) }},
		{"RotateRefresh", rotateRefresh.Script, func() (any, error) { return s.RotateRefresh(ctx, w.agent.ID, g.Family, 1, none) }},
		{"RotateRefresh with a proof", rotateRefresh.Proven, func() (any, error) { return s.RotateRefresh(ctx, w.agent.ID, g.Family, 1, proven()) }},
		{"GrantByIssuer", grantByIssuer.Script, func() (any, error) { return byIssuer(none) }},
		{"GrantByIssuer with a proof", grantByIssuer.Proven, func() (any, error) { return byIssuer(proven()) }},
		{"ExchangeAssertion", exchangeAssertion.Script, func() (any, error) { return s.ExchangeAssertion(ctx, w.assertion(1), none) }},
		{"ExchangeAssertion with a proof", exchangeAssertion.Proven, func() (any, error) { return s.ExchangeAssertion(ctx, w.assertion(1), proven()) }},
		{"CheckAssertion", checkAssertion, func() (any, error) { return nil, s.CheckAssertion(ctx, w.assertion(1)) }},
		{"UseProof", useProof, func() (any, error) { return nil, s.UseProof(ctx, bound(g), *newProof(1)) }},
		{"VerifyProof", verifyProof, func() (any, error) { return s.VerifyProof(ctx, bound(g), *newProof(1)) }},
		{"RevokeFamily", revokeFamily, func() (any, error) { return nil, s.RevokeFamily(ctx, g.AccessToken, g.Family) }},
		{"Delegate", delegateSession, func() (any, error) { return s.Delegate(ctx, w.delegation) }},
		{"CheckDelegated", checkDelegated, func() (any, error) { return s.CheckDelegated(ctx, w.asDelegated(g)) }},
		{"CheckTransaction", checkBelonging, func() (any, error) { return nil, s.CheckTransaction(ctx, w.asDelegated(g), of.transaction) }},
		{"Begin", beginSessionTransaction.Script, func() (any, error) { return s.Begin(ctx, g.AccessToken, w.beginning(1)) }},
		{"Begin without a session", beginTransaction.Script, func() (any, error) { return s.Begin(ctx, g.AccessToken, w.alone(1)) }},
		{"Commit", commitTransaction.Script, func() (any, error) { return s.Commit(ctx, g.AccessToken, of.transaction, Commit{}) }},
		{"RequestMore", requestMore.Script, func() (any, error) {
			return s.RequestMore(ctx, g.AccessToken, of.session, NewSessionRequest{AddActions: 1, Reason: "more"})
		}},
	}
}

// beforeTheChange says whether an operation's script only prepares its change: without the change it is nothing.
func (o operation) beforeTheChange() bool {
	return strings.HasSuffix(o.name, ", its index") || strings.HasSuffix(o.name, ", its claim")
}

// usesUpAProof says whether all that an operation changes is that a proof is used: another proof may come at once.
func (o operation) usesUpAProof() bool { return o.script == useProof || o.script == verifyProof }

// newOperations returns every operation, each on a tenant of its own.
func newOperations(t *testing.T, s *Store) ([]operation, []tenant) {
	t.Helper()
	var operations []operation
	var tenants []tenant
	for i := range everyOperation(tenant{key: APIKey{Organization: uuid.Nil}}, Grant{}, Transaction{}, Lease{}) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD, MaxLease: time.Hour, Lifetime: 2 * time.Hour})
		grant := w.exchange(t, s)
		lease := must(s.GrantLease(t.Context(), w.byKey(), w.session.ID, NewLease{MaxActions: 1, MaxValue: 5, Lifetime: time.Hour}))(t)
		pending := w.begin(t, s, grant.AccessToken, 5)
		w.asked = w.ask(t, s, grant.AccessToken, 1, 5).ID
		w.other = w.newKey(t, s, Viewer, 250).id
		w.opener = w.sessionKey(t, s).Family
		w.trusted = w.trust(t, s, "https://trusted.example")
		w.delegation = newDelegators(t, s, w).ask()
		operations = append(operations, everyOperation(w, grant, pending, lease)[i])
		tenants = append(tenants, w)
	}
	return operations, tenants
}

// loadScripts makes every script known to Redis, so that each operation is one request.
func loadScripts(t *testing.T, s *Store) {
	t.Helper()
	client := peek(t, s)
	for name := range luaFiles(t) {
		for _, source := range []string{lua.Source(name), lua.IdempotentSource(name), lua.SealedIdempotentSource(name), lua.ProvenSource(name)} {
			mustDo(t, client.ScriptLoad(t.Context(), source).Err())
		}
	}
}

package redisstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/lua"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
	"remit/redisstore/webhooks"
)

// operation is one thing that the store does, and the last script it runs for it.
type operation struct {
	name   string
	script *script
	do     func(context.Context, *Store) error
}

// everyOperation returns all that can be done to a tenant, by token where that is possible, with a transaction that is
// pending in its session, and a lease of it; no more than one of them is to be done to the same tenant.
func everyOperation(w tenant, g Grant, pending Transaction, l Lease) []operation {
	caller := byToken(g)
	n := NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour}
	return []operation{
		{"CreateOrganization", createOrganization.Script, func(ctx context.Context, s *Store) error {
			_, err := s.CreateOrganization(ctx, "", APIKey{Organization: NewRootID()}, "acme", "", nil)
			return err
		}},
		{"Organization", kernel.AuthenticateOrganization, func(ctx context.Context, s *Store) error {
			_, err := s.Organization(ctx, w.key)
			return err
		}},
		{"RotateAPIKey", rotateAPIKey.Script, func(ctx context.Context, s *Store) error {
			_, err := s.RotateAPIKey(ctx, w.key, APIKey{Hash: [32]byte{3}}, time.Hour, nil)
			return err
		}},
		{"RotateAPIKeyOf", rotateAPIKey.Script, func(ctx context.Context, s *Store) error {
			_, err := s.RotateAPIKeyOf(ctx, w.key, w.other, APIKey{Hash: [32]byte{3}}, time.Hour, nil)
			return err
		}},
		{"CreateAPIKey", createAPIKey.Script, func(ctx context.Context, s *Store) error {
			_, err := s.CreateAPIKey(ctx, w.key, APIKey{Hash: [32]byte{3}}, NewAPIKey{Name: "n", Role: Viewer})
			return err
		}},
		{"CreateAPIKey with an idempotency key", createAPIKey.Keyed, func(ctx context.Context, s *Store) error {
			n := NewAPIKey{Name: "n", Role: Viewer, Idempotency: sealedKey("secret", "credential")}
			_, err := s.CreateAPIKey(ctx, w.key, APIKey{Hash: [32]byte{3}}, n)
			return err
		}},
		{"OwnKey", identifyAPIKey, func(ctx context.Context, s *Store) error {
			_, err := s.OwnKey(ctx, w.key)
			return err
		}},
		{"CheckKey", identifyAPIKey, func(ctx context.Context, s *Store) error { return s.CheckKey(ctx, w.key) }},
		{"APIKeys", listAPIKeys, func(ctx context.Context, s *Store) error {
			_, err := s.APIKeys(ctx, w.key)
			return err
		}},
		{"DeleteAPIKey", deleteAPIKey, func(ctx context.Context, s *Store) error {
			return s.DeleteAPIKey(ctx, w.key, w.other)
		}},
		{"CreateAgent, its index", indexAgent, func(ctx context.Context, s *Store) error {
			_, err := s.CreateAgent(ctx, w.key, Agent{Name: "scout"}, [32]byte{3}, nil)
			return err
		}},
		{"CreateAgent", createAgent.Script, func(ctx context.Context, s *Store) error {
			_, err := s.CreateAgent(ctx, w.key, Agent{Name: "scout"}, [32]byte{3}, nil)
			return err
		}},
		{"Agents", kernel.ListOrganization, func(ctx context.Context, s *Store) error {
			_, err := s.Agents(ctx, w.key, Query{Limit: 1})
			return err
		}},
		{"Agent", kernel.AuthenticateOrganization, func(ctx context.Context, s *Store) error {
			_, err := s.Agent(ctx, w.key, w.agent.ID)
			return err
		}},
		{"RevokeAgent", revokeAgent, func(ctx context.Context, s *Store) error {
			_, err := s.RevokeAgent(ctx, w.key, w.agent.ID)
			return err
		}},
		{"DeleteAgent", deleteAgent, func(ctx context.Context, s *Store) error {
			_, err := s.DeleteAgent(ctx, w.key, w.agent.ID)
			return err
		}},
		{"SuspendAgent", suspendAgent, func(ctx context.Context, s *Store) error {
			_, err := s.SuspendAgent(ctx, w.key, w.agent.ID, "")
			return err
		}},
		{"ResumeAgent", resumeAgent, func(ctx context.Context, s *Store) error {
			_, err := s.ResumeAgent(ctx, w.key, w.agent.ID, "")
			return err
		}},
		{"ChangeAgent", changeAgent, func(ctx context.Context, s *Store) error {
			_, err := s.ChangeAgent(ctx, w.key, w.agent.ID, AgentChanges{Scopes: &[]string{"read"}})
			return err
		}},
		{"SuspendSession", suspendSession, func(ctx context.Context, s *Store) error {
			_, err := s.SuspendSession(ctx, w.key, w.session.ID, "")
			return err
		}},
		{"ResumeSession", resumeSession, func(ctx context.Context, s *Store) error {
			_, err := s.ResumeSession(ctx, w.key, w.session.ID, "")
			return err
		}},
		{"Suspend", suspendOrganization, func(ctx context.Context, s *Store) error {
			_, err := s.Suspend(ctx, w.key.Organization)
			return err
		}},
		{"ReplaceAPIKey", replaceAPIKey, func(ctx context.Context, s *Store) error {
			_, err := s.ReplaceAPIKey(ctx, APIKey{Organization: w.key.Organization, Hash: [32]byte{4}}, time.Hour)
			return err
		}},
		{"RotateAgentSecret", rotateAgentSecret.Script, func(ctx context.Context, s *Store) error {
			_, err := s.RotateAgentSecret(ctx, w.key, w.agent.ID, SecretRotation{Hash: [32]byte{3}, Grace: time.Hour}, nil)
			return err
		}},
		{"ExchangeSecret", exchangeSecret.Script, func(ctx context.Context, s *Store) error {
			_, err := s.ExchangeSecret(ctx, w.agent.ID, w.secret, GrantRequest{})
			return err
		}},
		{"RotateRefresh", rotateRefresh.Script, func(ctx context.Context, s *Store) error {
			_, err := s.RotateRefresh(ctx, w.agent.ID, g.Family, 1, GrantRequest{})
			return err
		}},
		{"ExchangeSecret with a proof", exchangeSecret.Proven, func(ctx context.Context, s *Store) error {
			_, err := s.ExchangeSecret(ctx, w.agent.ID, w.secret, GrantRequest{Proof: newProof(1)})
			return err
		}},
		{"RotateRefresh with a proof", rotateRefresh.Proven, func(ctx context.Context, s *Store) error {
			_, err := s.RotateRefresh(ctx, w.agent.ID, g.Family, 1, GrantRequest{Proof: newProof(1)})
			return err
		}},
		{"IssuerFor", findTrustedIssuer, func(ctx context.Context, s *Store) error {
			_, _, err := s.IssuerFor(ctx, w.agent.ID, w.trusted.Settings.Issuer)
			return err
		}},
		{"GrantByIssuer", grantByIssuer.Script, func(ctx context.Context, s *Store) error {
			_, err := s.GrantByIssuer(ctx, w.key.Organization, w.agent.ID, w.trusted, GrantRequest{})
			return err
		}},
		{"GrantByIssuer with a proof", grantByIssuer.Proven, func(ctx context.Context, s *Store) error {
			_, err := s.GrantByIssuer(ctx, w.key.Organization, w.agent.ID, w.trusted, GrantRequest{Proof: newProof(1)})
			return err
		}},
		{"ExchangeAssertion", exchangeAssertion.Script, func(ctx context.Context, s *Store) error {
			_, err := s.ExchangeAssertion(ctx, w.assertion(1), GrantRequest{})
			return err
		}},
		{"ExchangeAssertion with a proof", exchangeAssertion.Proven, func(ctx context.Context, s *Store) error {
			_, err := s.ExchangeAssertion(ctx, w.assertion(1), GrantRequest{Proof: newProof(1)})
			return err
		}},
		{"CheckAssertion", checkAssertion, func(ctx context.Context, s *Store) error {
			return s.CheckAssertion(ctx, w.assertion(1))
		}},
		{"UseProof", useProof, func(ctx context.Context, s *Store) error {
			return s.UseProof(ctx, bound(g), *newProof(1))
		}},
		{"VerifyProof", verifyProof, func(ctx context.Context, s *Store) error {
			_, err := s.VerifyProof(ctx, bound(g), *newProof(1))
			return err
		}},
		{"RevokeFamily", revokeFamily, func(ctx context.Context, s *Store) error {
			return s.RevokeFamily(ctx, g.AccessToken, g.Family)
		}},
		{"Delegate", delegateSession, func(ctx context.Context, s *Store) error {
			_, err := s.Delegate(ctx, w.delegation)
			return err
		}},
		{"CheckDelegated", checkDelegated, func(ctx context.Context, s *Store) error {
			_, err := s.CheckDelegated(ctx, w.asDelegated(g))
			return err
		}},
		{"CheckTransaction", checkBelonging, func(ctx context.Context, s *Store) error {
			return s.CheckTransaction(ctx, w.asDelegated(g), pending.ID)
		}},
		{"CreateSession, its index", indexSession, func(ctx context.Context, s *Store) error {
			_, err := s.CreateSession(ctx, w.key, n)
			return err
		}},
		{"CreateSession", createSession.Script, func(ctx context.Context, s *Store) error {
			_, err := s.CreateSession(ctx, w.key, n)
			return err
		}},
		{"Session", getSession, func(ctx context.Context, s *Store) error {
			_, err := s.Session(ctx, caller, w.session.ID)
			return err
		}},
		{"Sessions", kernel.ListOfAgent, func(ctx context.Context, s *Store) error {
			_, err := s.Sessions(ctx, caller, Query{Limit: 1})
			return err
		}},
		{"Sessions of the organization", listSessions, func(ctx context.Context, s *Store) error {
			_, err := s.Sessions(ctx, w.byKey(), Query{Limit: 1})
			return err
		}},
		{"Active sessions of the organization", listActive, func(ctx context.Context, s *Store) error {
			_, err := s.Sessions(ctx, w.byKey(), Query{Limit: 1, Status: Active})
			return err
		}},
		{"Charge", chargeSession.Script, func(ctx context.Context, s *Store) error {
			_, err := s.Charge(ctx, caller, w.session.ID, Charge{Count: 1, Value: 1})
			return err
		}},
		{"Charge with an idempotency key", chargeSession.Keyed, func(ctx context.Context, s *Store) error {
			_, err := s.Charge(ctx, caller, w.session.ID, Charge{Count: 1, Value: 1, Idempotency: &Idempotency{Key: "key"}})
			return err
		}},
		{"Charge with an idempotency key, its claim", kernel.ClaimKey, func(ctx context.Context, s *Store) error {
			_, err := s.Charge(ctx, w.byKey(), w.session.ID, Charge{Count: 1, Value: 1, Idempotency: &Idempotency{Key: "key"}})
			return err
		}},
		{"ChargeBatch", chargeBatch.Script, func(ctx context.Context, s *Store) error {
			return chargeTwice(ctx, s, caller, w.session.ID, nil)
		}},
		{"ChargeBatch with an idempotency key", chargeBatch.Keyed, func(ctx context.Context, s *Store) error {
			return chargeTwice(ctx, s, caller, w.session.ID, &Idempotency{Key: "key"})
		}},
		{"ChargeBatch with an idempotency key, its claim", kernel.ClaimAgentKey, func(ctx context.Context, s *Store) error {
			return chargeTwice(ctx, s, caller, w.session.ID, &Idempotency{Key: "key"})
		}},
		{"CreateSession with an idempotency key", createSession.Keyed, func(ctx context.Context, s *Store) error {
			idem := n
			idem.Idempotency = &Idempotency{Key: "key"}
			_, err := s.CreateSession(ctx, w.key, idem)
			return err
		}},
		{"CreateSession with an idempotency key, its claim", claimSession, func(ctx context.Context, s *Store) error {
			keyed := n
			keyed.Idempotency = &Idempotency{Key: "key"}
			_, err := s.CreateSession(ctx, w.key, keyed)
			return err
		}},
		{"CreateAgent with an idempotency key, its claim", claimAgent, func(ctx context.Context, s *Store) error {
			_, err := s.CreateAgent(ctx, w.key, Agent{Name: "scout"}, [32]byte{3}, sealedKey("secret", "credential"))
			return err
		}},
		{"CreateAgent with an idempotency key", createAgent.Keyed, func(ctx context.Context, s *Store) error {
			_, err := s.CreateAgent(ctx, w.key, Agent{Name: "scout"}, [32]byte{3}, sealedKey("secret", "credential"))
			return err
		}},
		{"ChangeLimits", changeLimits.Script, func(ctx context.Context, s *Store) error {
			_, err := s.ChangeLimits(ctx, w.key, w.session.ID, NewLimits{MaxActions: new(int64(99))})
			return err
		}},
		{"Begin", beginSessionTransaction.Script, func(ctx context.Context, s *Store) error {
			_, err := s.Begin(ctx, g.AccessToken, w.beginning(1))
			return err
		}},
		{"Begin without a session", beginTransaction.Script, func(ctx context.Context, s *Store) error {
			_, err := s.Begin(ctx, g.AccessToken, w.alone(1))
			return err
		}},
		{"Begin with an idempotency key", beginSessionTransaction.Keyed, func(ctx context.Context, s *Store) error {
			idem := w.beginning(1)
			idem.Idempotency = &Idempotency{Key: "key"}
			_, err := s.Begin(ctx, g.AccessToken, idem)
			return err
		}},
		{"Commit", commitTransaction.Script, func(ctx context.Context, s *Store) error {
			_, err := s.Commit(ctx, g.AccessToken, pending.ID, Commit{})
			return err
		}},
		{"Commit with an idempotency key", commitTransaction.Keyed, func(ctx context.Context, s *Store) error {
			_, err := s.Commit(ctx, g.AccessToken, pending.ID, Commit{Idempotency: &Idempotency{Key: "key"}})
			return err
		}},
		{"Rollback", rollbackTransaction.Script, func(ctx context.Context, s *Store) error {
			_, err := s.Rollback(ctx, caller, pending.ID, Rollback{})
			return err
		}},
		{"Rollback with an idempotency key", rollbackTransaction.Keyed, func(ctx context.Context, s *Store) error {
			_, err := s.Rollback(ctx, caller, pending.ID, Rollback{Idempotency: &Idempotency{Key: "key"}})
			return err
		}},
		{"Transaction", getTransaction, func(ctx context.Context, s *Store) error {
			_, err := s.Transaction(ctx, caller, pending.ID)
			return err
		}},
		{"Transactions", kernel.ListOfAgent, func(ctx context.Context, s *Store) error {
			_, err := s.Transactions(ctx, caller, Query{Limit: 1})
			return err
		}},
		{"Transactions of a session", kernel.ListOfAgent, func(ctx context.Context, s *Store) error {
			_, err := s.Transactions(ctx, caller, Query{Limit: 1, Session: w.session.ID})
			return err
		}},
		{"Transactions of the organization", kernel.ListOrganization, func(ctx context.Context, s *Store) error {
			_, err := s.Transactions(ctx, w.byKey(), Query{Limit: 1})
			return err
		}},
		{"Events", records.ListEvents, func(ctx context.Context, s *Store) error {
			_, _, err := s.Events(ctx, caller, w.agent.ID, "", 10)
			return err
		}},
		{"Families", listFamilies, func(ctx context.Context, s *Store) error {
			_, err := s.Families(ctx, w.key, w.agent.ID, Query{Limit: 1})
			return err
		}},
		{"EndFamily", endFamily, func(ctx context.Context, s *Store) error {
			return s.EndFamily(ctx, w.key, w.agent.ID, g.Family)
		}},
		{"EndFamily of a token without a refresh token", endFamily, func(ctx context.Context, s *Store) error {
			return s.EndFamily(ctx, w.key, w.agent.ID, w.tokenID(0))
		}},
		{"RevokeFamilies", endFamilies, func(ctx context.Context, s *Store) error {
			return revokeFamilies(ctx, s, w.key, w.agent.ID)
		}},
		{"GrantLease", grantLease.Script, func(ctx context.Context, s *Store) error {
			_, err := s.GrantLease(ctx, caller, w.session.ID, NewLease{MaxActions: 1, MaxValue: 1, Lifetime: time.Minute})
			return err
		}},
		{"GrantLease with an idempotency key", grantLease.Keyed, func(ctx context.Context, s *Store) error {
			_, err := s.GrantLease(ctx, caller, w.session.ID, NewLease{MaxActions: 1, Lifetime: time.Minute, Idempotency: &Idempotency{Key: "key"}})
			return err
		}},
		{"Lease", getLease, func(ctx context.Context, s *Store) error {
			_, err := s.Lease(ctx, caller, l.ID)
			return err
		}},
		{"SettleLease", settleLease.Script, func(ctx context.Context, s *Store) error {
			_, err := s.SettleLease(ctx, caller, l.ID, NewSettlement{ActionCount: 1})
			return err
		}},
		{"SettleLease with an idempotency key", settleLease.Keyed, func(ctx context.Context, s *Store) error {
			n := NewSettlement{ActionCount: 1, Renew: &NewLease{MaxActions: 1, Lifetime: time.Minute}, Idempotency: &Idempotency{Key: "key"}}
			_, err := s.SettleLease(ctx, caller, l.ID, n)
			return err
		}},
		{"RequestMore", requestMore.Script, func(ctx context.Context, s *Store) error {
			_, err := s.RequestMore(ctx, g.AccessToken, w.session.ID, NewSessionRequest{AddActions: 1, Reason: "more"})
			return err
		}},
		{"RequestMore with an idempotency key", requestMore.Keyed, func(ctx context.Context, s *Store) error {
			n := NewSessionRequest{AddActions: 1, Reason: "more", Idempotency: &Idempotency{Key: "key"}}
			_, err := s.RequestMore(ctx, g.AccessToken, w.session.ID, n)
			return err
		}},
		{"SessionRequest", getRequest, func(ctx context.Context, s *Store) error {
			_, err := s.SessionRequest(ctx, caller, w.session.ID, w.asked)
			return err
		}},
		{"SessionRequests", listRequests, func(ctx context.Context, s *Store) error {
			_, err := s.SessionRequests(ctx, caller, w.session.ID)
			return err
		}},
		{"ApproveRequest", approveRequest, func(ctx context.Context, s *Store) error {
			_, err := s.ApproveRequest(ctx, w.key, w.session.ID, w.asked, Approval{})
			return err
		}},
		{"DenyRequest", denyRequest, func(ctx context.Context, s *Store) error {
			_, err := s.DenyRequest(ctx, w.key, w.session.ID, w.asked, "no")
			return err
		}},
		{"CreateWebhook", webhooks.PutWebhook.Script, func(ctx context.Context, s *Store) error {
			_, err := s.CreateWebhook(ctx, w.key, NewID(w.key.Organization), webhooks.Settings{URL: "https://example.com/"}, nil)
			return err
		}},
		{"Webhooks", webhooks.ListWebhooks, func(ctx context.Context, s *Store) error {
			_, err := s.Webhooks(ctx, w.key)
			return err
		}},
		{"CreateTrustedIssuer", putTrustedIssuer.Script, func(ctx context.Context, s *Store) error {
			_, err := s.CreateTrustedIssuer(ctx, w.key, w.trusting("https://issuer.example"), nil)
			return err
		}},
		{"CreateTrustedIssuer with an idempotency key", putTrustedIssuer.Keyed, func(ctx context.Context, s *Store) error {
			_, err := s.CreateTrustedIssuer(ctx, w.key, w.trusting("https://issuer.example"), &Idempotency{Key: longKey})
			return err
		}},
		{"TrustedIssuers", listTrustedIssuers, func(ctx context.Context, s *Store) error {
			_, err := s.TrustedIssuers(ctx, w.key)
			return err
		}},
		{"EndSession", endSession, func(ctx context.Context, s *Store) error {
			_, err := s.EndSession(ctx, caller, w.session.ID)
			return err
		}},
	}
}

// chargeTwice charges a session in a batch, and returns the outcome of the first charge.
func chargeTwice(ctx context.Context, s *Store, c Caller, session uuid.UUID, idem *Idempotency) error {
	outcomes, err := s.ChargeBatch(ctx, c, []BatchCharge{{session, Charge{Count: 1}}, {session, Charge{Count: 1}}}, idem)
	if err != nil {
		return err
	}
	return outcomes[0].Err
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
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD, MaxLease: time.Minute})
		grant := w.exchange(t, s)
		pending := w.begin(t, s, grant.AccessToken, 5)
		w.asked = w.ask(t, s, grant.AccessToken, 1, 5).ID
		w.other = w.newKey(t, s, Viewer, 250).id
		w.trusted = w.trust(t, s, "https://trusted.example")
		w.delegation = newDelegators(t, s, w).ask()
		operations = append(operations, everyOperation(w, grant, pending, w.lease(t, s, 1, 5))[i])
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
			if err := client.ScriptLoad(t.Context(), source).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

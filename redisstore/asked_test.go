package redisstore

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
	"remit/redisstore/webhooks"
)

// call is an operation, and the last script that it runs. Those whose failures operations_test.go leaves out have no script here.
type call struct {
	name   string
	script *script
	do     func() (any, error)
}

// asked is an operation that a caller is checked for.
type asked struct {
	name string
	ask  func(s *Store, t *testing.T, of target) error
}

// endsItsKey says whether nothing can be asked by the same key afterwards.
func (a asked) endsItsKey() bool { return a.name == "RotateAPIKey" }

// asking returns calls as they are made later, about any target.
func asking(calls func(ctx context.Context, s *Store, of target) []call) (all []asked) {
	for i, one := range calls(context.Background(), nil, target{}) {
		all = append(all, asked{one.name, func(s *Store, t *testing.T, of target) error {
			return errOf(calls(t.Context(), s, of)[i].do())
		}})
	}
	return all
}

// askedByKey is every operation that an API key may ask for.
func askedByKey(key APIKey) []asked {
	alone := asking(func(ctx context.Context, s *Store, of target) []call { return callsByKey(ctx, s, key, of) })
	return append(alone, askedByEither(Caller{Key: &key})...)
}

// askedByEither is every operation that an API key and an agent may ask for.
func askedByEither(caller Caller) []asked {
	return asking(func(ctx context.Context, s *Store, of target) []call { return callsByEither(ctx, s, caller, of) })
}

// target is what a caller asks for.
type target struct {
	agent, session, family, transaction, lease, request, key, webhook, delivery, issuer, sessionKey uuid.UUID
}

// targetIn is a target that does not exist, but for the agent and the session if they do.
func targetIn(agent, session uuid.UUID) target {
	in := NewID(agent)
	return target{agent, session, in, NewID(session), NewID(session), NewID(session), in, in, in, in, in}
}

// furnished gives the tenant one of everything, and returns that. Its session must have room for two actions, and for leases.
func (w tenant) furnished(t *testing.T, s *Store) target {
	t.Helper()
	grant, organization := w.exchange(t, s), w.key.Organization
	hook := w.hook(t, s, 0)
	return target{
		agent: w.agent.ID, session: w.session.ID, family: grant.Family, webhook: hook.ID, issuer: w.trust(t, s, "https://issuer.example").ID,
		transaction: must(s.Begin(t.Context(), grant.AccessToken, w.beginning(1)))(t).ID,
		lease:       w.lease(t, s, 1, 1).ID,
		request:     w.ask(t, s, grant.AccessToken, 1, 1).ID,
		key:         must(s.CreateAPIKey(t.Context(), w.key, APIKey{Organization: organization, Hash: [32]byte{6}}, NewAPIKey{Role: Viewer}))(t).ID,
		sessionKey:  w.sessionKey(t, s).Family,
		delivery:    must(s.SendTest(t.Context(), w.key, hook.ID, nil, time.Now()))(t).ID,
	}
}

// contentsOf is contents with all that the tenant was furnished with.
func (w tenant) contentsOf(t *testing.T, s *Store, of target) map[string]any {
	t.Helper()
	held := w.contents(t, s)
	maps.Copy(held, contents(t, s, append(s.DeliveryKeys(w.key.Organization, of.webhook), s.keys.Family(of.agent, of.family),
		s.keys.Transaction(of.agent, of.transaction), s.keys.Lease(of.agent, of.lease), s.keys.Holds(of.agent, of.session))...))
	return held
}

// newSecret replaces a webhook's secret.
func newSecret(settings *webhooks.Settings) error {
	settings.Secrets = []webhooks.Secret{{Sealed: "plain:AQ=="}}
	return nil
}

// errOf returns the error of an operation whose value does not matter.
func errOf[T any](_ T, err error) error { return err }

// callsByKey are the operations that only an API key may ask for.
func callsByKey(ctx context.Context, s *Store, key APIKey, of target) []call {
	fresh := func(hash byte) APIKey { return APIKey{Organization: key.Organization, Hash: [32]byte{hash}} }
	limits, issuer := NewLimits{MaxActions: new(int64(99))}, TrustedIssuerSettings{Issuer: "https://spy.example"}
	newIssuer := func(settings *TrustedIssuerSettings) error { settings.Description = "spied on"; return nil }
	return []call{
		{"Organization", kernel.AuthenticateOrganization, func() (any, error) { return s.Organization(ctx, key) }},
		{"RotateAPIKey", rotateAPIKey.Script, func() (any, error) { return s.RotateAPIKey(ctx, key, fresh(9), 0, nil) }},
		{"CreateAgent", createAgent.Script, func() (any, error) { return s.CreateAgent(ctx, key, Agent{Name: "spy"}, [32]byte{}, nil) }},
		{"Agents", kernel.ListOrganization, func() (any, error) { return s.Agents(ctx, key, Query{Limit: 1}) }},
		{"Agent", kernel.AuthenticateOrganization, func() (any, error) { return s.Agent(ctx, key, of.agent) }},
		{"RevokeAgent", revokeAgent, func() (any, error) { return s.RevokeAgent(ctx, key, of.agent) }},
		{"DeleteAgent", deleteAgent, func() (any, error) { return s.DeleteAgent(ctx, key, of.agent) }},
		{"RotateAgentSecret", rotateAgentSecret.Script, func() (any, error) {
			return s.RotateAgentSecret(ctx, key, of.agent, SecretRotation{Hash: [32]byte{9}}, nil)
		}},
		{"RotateAgentSecret with all tokens", endFamilies, func() (any, error) { return nil, revokeFamilies(ctx, s, key, of.agent) }},
		{"Families", listFamilies, func() (any, error) { return s.Families(ctx, key, of.agent, Query{Limit: 1}) }},
		{"EndFamily", endFamily, func() (any, error) { return nil, s.EndFamily(ctx, key, of.agent, of.family) }},
		{"CreateSession", createSession.Script, func() (any, error) {
			return s.CreateSession(ctx, key, NewSession{Agent: of.agent, MaxActions: 1, Lifetime: time.Hour})
		}},
		{"ChangeLimits", changeLimits.Script, func() (any, error) { return s.ChangeLimits(ctx, key, of.session, limits) }},
		{"ChangeAgent", changeAgent, func() (any, error) {
			return s.ChangeAgent(ctx, key, of.agent, AgentChanges{Scopes: &[]string{"read"}})
		}},
		{"SuspendAgent", suspendAgent, func() (any, error) { return s.SuspendAgent(ctx, key, of.agent, "") }},
		{"ResumeAgent", resumeAgent, func() (any, error) { return s.ResumeAgent(ctx, key, of.agent, "") }},
		{"SuspendAgents", nil, func() (any, error) { return s.SuspendAgents(ctx, key, "") }},
		{"ResumeAgents", nil, func() (any, error) { return s.ResumeAgents(ctx, key, "") }},
		{"SetBudget", nil, func() (any, error) { return s.SetBudget(ctx, key, 1, BudgetForever) }},
		{"CheckKey", identifyAPIKey, func() (any, error) { return nil, s.CheckKey(ctx, key) }},
		{"OwnKey", identifyAPIKey, func() (any, error) { return s.OwnKey(ctx, key) }},
		{"Budget", nil, func() (any, error) { return s.Budget(ctx, key) }},
		{"DeleteBudget", nil, func() (any, error) { return nil, s.DeleteBudget(ctx, key) }},
		{"SuspendSession", suspendSession, func() (any, error) { return s.SuspendSession(ctx, key, of.session, "") }},
		{"ResumeSession", resumeSession, func() (any, error) { return s.ResumeSession(ctx, key, of.session, "") }},
		{"ApproveRequest", approveRequest, func() (any, error) { return s.ApproveRequest(ctx, key, of.session, of.request, Approval{}) }},
		{"DenyRequest", denyRequest, func() (any, error) { return s.DenyRequest(ctx, key, of.session, of.request, "") }},
		{"CreateSessionKey", createSessionKey.Script, func() (any, error) {
			return s.CreateSessionKey(ctx, key, of.session, NewSessionKey{Name: "spy"})
		}},
		{"SessionKeys", listSessionKeys, func() (any, error) { return s.SessionKeys(ctx, key, of.session) }},
		{"DeleteSessionKey", deleteSessionKey, func() (any, error) {
			return nil, s.DeleteSessionKey(ctx, key, of.session, of.sessionKey)
		}},
		{"CreateAPIKey", createAPIKey.Script, func() (any, error) {
			return s.CreateAPIKey(ctx, key, fresh(8), NewAPIKey{Name: "spy", Role: Viewer})
		}},
		{"APIKeys", listAPIKeys, func() (any, error) { return s.APIKeys(ctx, key) }},
		{"RotateAPIKeyOf", rotateAPIKey.Script, func() (any, error) { return s.RotateAPIKeyOf(ctx, key, of.key, fresh(7), 0, nil) }},
		{"DeleteAPIKey", deleteAPIKey, func() (any, error) { return nil, s.DeleteAPIKey(ctx, key, of.key) }},
		{"CreateWebhook", webhooks.PutWebhook.Script, func() (any, error) {
			return s.CreateWebhook(ctx, key, NewID(key.Organization), webhooks.Settings{URL: "https://example.com/"}, nil)
		}},
		{"Webhooks", webhooks.ListWebhooks, func() (any, error) { return s.Webhooks(ctx, key) }},
		{"Webhook", nil, func() (any, error) { return s.Webhook(ctx, key, of.webhook) }},
		{"ChangeWebhook", nil, func() (any, error) { return s.ChangeWebhook(ctx, key, of.webhook, nil, newSecret) }},
		{"ChangeWebhook with an idempotency key", nil, func() (any, error) {
			return s.ChangeWebhook(ctx, key, of.webhook, sealedKey("secret", "credential"), newSecret)
		}},
		{"Deliveries", nil, func() (any, error) { return s.Deliveries(ctx, key, of.webhook) }},
		{"SendAgain", nil, func() (any, error) { return s.SendAgain(ctx, key, of.webhook, of.delivery, time.Now()) }},
		{"SendTest", nil, func() (any, error) { return s.SendTest(ctx, key, of.webhook, nil, time.Now()) }},
		{"DeleteWebhook", nil, func() (any, error) { return nil, s.DeleteWebhook(ctx, key, of.webhook) }},
		{"CreateTrustedIssuer", putTrustedIssuer.Script, func() (any, error) { return s.CreateTrustedIssuer(ctx, key, issuer, nil) }},
		{"TrustedIssuers", listTrustedIssuers, func() (any, error) { return s.TrustedIssuers(ctx, key) }},
		{"TrustedIssuer", nil, func() (any, error) { return s.TrustedIssuer(ctx, key, of.issuer) }},
		{"ChangeTrustedIssuer", nil, func() (any, error) { return s.ChangeTrustedIssuer(ctx, key, of.issuer, newIssuer) }},
		{"DeleteTrustedIssuer", nil, func() (any, error) { return nil, s.DeleteTrustedIssuer(ctx, key, of.issuer) }},
		{"OrganizationEvents", nil, func() (any, error) { return s.OrganizationEvents(ctx, key, 0, 1) }},
		{"UsageReport", nil, func() (any, error) { return s.UsageReport(ctx, key, everyDay()) }},
		{"UsageReport of one agent", nil, func() (any, error) { return s.UsageReport(ctx, key, records.UsageQuery{To: 1, Agent: of.agent}) }},
	}
}

// callsByEither are the operations that an API key and an agent may ask for, with the scripts of those by an agent.
func callsByEither(ctx context.Context, s *Store, caller Caller, of target) []call {
	charge, lease := Charge{Count: 1, Value: 1}, NewLease{MaxActions: 1, MaxValue: 1, Lifetime: time.Minute}
	return []call{
		{"Session", getSession, func() (any, error) { return s.Session(ctx, caller, of.session) }},
		{"EndSession", endSession, func() (any, error) { return s.EndSession(ctx, caller, of.session) }},
		{"Charge", chargeSession.Script, func() (any, error) { return s.Charge(ctx, caller, of.session, charge) }},
		{"ChargeBatch", chargeBatch.Script, func() (any, error) { return asOne(batchOfTwo(ctx, s, caller, of.session, nil)) }},
		{"Transactions", kernel.ListOfAgent, func() (any, error) { return s.Transactions(ctx, caller, Query{Limit: 1}) }},
		{"Transactions of a session", kernel.ListOfAgent, func() (any, error) {
			return s.Transactions(ctx, caller, Query{Limit: 1, Session: of.session})
		}},
		{"Events", records.ListEvents, func() (any, error) { return firstOf(s.Events(ctx, caller, of.agent, "", 1)) }},
		{"Sessions", kernel.ListOfAgent, func() (any, error) { return s.Sessions(ctx, caller, Query{Limit: 1}) }},
		{"Sessions of one agent", nil, func() (any, error) { return s.Sessions(ctx, caller, Query{Limit: 1, Agent: of.agent}) }},
		{"CreateChildSession", nil, func() (any, error) {
			return s.CreateChildSession(ctx, caller, NewSession{
				Agent: of.agent, Parent: of.session, MaxActions: 1, MaxValue: 1, Lifetime: 10 * time.Minute})
		}},
		{"Tree", nil, func() (any, error) { return s.Tree(ctx, caller, of.session) }},
		{"SessionRequests", listRequests, func() (any, error) { return s.SessionRequests(ctx, caller, of.session) }},
		{"SessionRequest", getRequest, func() (any, error) { return s.SessionRequest(ctx, caller, of.session, of.request) }},
		{"SessionUsage", nil, func() (any, error) { return s.SessionUsage(ctx, caller, of.session) }},
		{"Authorize", nil, func() (any, error) { return firstOf(s.Authorize(ctx, caller, of.session, charge)) }},
		{"Transaction", getTransaction, func() (any, error) { return s.Transaction(ctx, caller, of.transaction) }},
		{"Rollback", rollbackTransaction.Script, func() (any, error) { return s.Rollback(ctx, caller, of.transaction, Rollback{}) }},
		{"GrantLease", grantLease.Script, func() (any, error) { return s.GrantLease(ctx, caller, of.session, lease) }},
		{"SettleLease", settleLease.Script, func() (any, error) { return s.SettleLease(ctx, caller, of.lease, NewSettlement{ActionCount: 1}) }},
		{"Lease", getLease, func() (any, error) { return s.Lease(ctx, caller, of.lease) }},
	}
}

// firstOf returns the first of an operation's two values.
func firstOf[T, U any](value T, _ U, err error) (any, error) { return value, err }

// batchOfTwo charges a session twice in a batch.
func batchOfTwo(ctx context.Context, s *Store, c Caller, session uuid.UUID, idem *Idempotency) ([]ChargeOutcome, error) {
	return s.ChargeBatch(ctx, c, []BatchCharge{{session, Charge{Count: 1}}, {session, Charge{Count: 1}}}, idem)
}

// chargeTwice is batchOfTwo for its error, or the first in it.
func chargeTwice(ctx context.Context, s *Store, c Caller, session uuid.UUID, idem *Idempotency) error {
	return errOf(asOne(batchOfTwo(ctx, s, c, session, idem)))
}

// asOne returns the usages of a batch, or the first error in it.
func asOne(outcomes []ChargeOutcome, err error) (any, error) {
	usages := make([]Usage, len(outcomes))
	for i, outcome := range outcomes {
		if usages[i] = outcome.Usage; err == nil {
			err = outcome.Err
		}
	}
	return usages, err
}

package redisstore

import (
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/records"
	"remit/redisstore/webhooks"
)

// asked is every operation that a caller is checked for.
type asked struct {
	name string
	ask  func(s *Store, t *testing.T, of target) error
}

// endsItsKey says whether nothing can be asked by the same key afterwards.
func (a asked) endsItsKey() bool { return a.name == "RotateAPIKey" }

// target is what a caller asks for.
type target struct{ agent, session, family, transaction, lease, request, key, webhook, delivery, issuer uuid.UUID }

// targetIn is a target that does not exist, but for the agent and the session if they do.
func targetIn(agent, session uuid.UUID) target {
	in := NewID(agent)
	return target{agent, session, in, NewID(session), NewID(session), NewID(session), in, in, in, in}
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

// askedByKey is every operation that an API key may ask for.
func askedByKey(key APIKey) []asked {
	return append([]asked{
		{"Organization", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Organization(t.Context(), key))
		}},
		{"RotateAPIKey", func(s *Store, t *testing.T, of target) error {
			return errOf(s.RotateAPIKey(t.Context(), key, APIKey{Hash: [32]byte{9}}, 0, nil))
		}},
		{"CreateAgent", func(s *Store, t *testing.T, of target) error {
			return errOf(s.CreateAgent(t.Context(), key, Agent{Name: "spy"}, [32]byte{}, nil))
		}},
		{"Agents", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Agents(t.Context(), key, Query{Limit: 1}))
		}},
		{"Agent", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Agent(t.Context(), key, of.agent))
		}},
		{"RevokeAgent", func(s *Store, t *testing.T, of target) error {
			return errOf(s.RevokeAgent(t.Context(), key, of.agent))
		}},
		{"DeleteAgent", func(s *Store, t *testing.T, of target) error {
			return errOf(s.DeleteAgent(t.Context(), key, of.agent))
		}},
		{"RotateAgentSecret", func(s *Store, t *testing.T, of target) error {
			return errOf(s.RotateAgentSecret(t.Context(), key, of.agent, SecretRotation{Hash: [32]byte{9}}, nil))
		}},
		{"Families", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Families(t.Context(), key, of.agent, Query{Limit: 1}))
		}},
		{"EndFamily", func(s *Store, t *testing.T, of target) error {
			return s.EndFamily(t.Context(), key, of.agent, of.family)
		}},
		{"RotateAgentSecret with all tokens", func(s *Store, t *testing.T, of target) error {
			return revokeFamilies(t.Context(), s, key, of.agent)
		}},
		{"CreateSession", func(s *Store, t *testing.T, of target) error {
			return errOf(s.CreateSession(t.Context(), key, NewSession{Agent: of.agent, MaxActions: 1, Lifetime: 1e9}))
		}},
		{"ChangeLimits", func(s *Store, t *testing.T, of target) error {
			return errOf(s.ChangeLimits(t.Context(), key, of.session, NewLimits{MaxActions: new(int64(99))}))
		}},
		{"ChangeAgent", func(s *Store, t *testing.T, of target) error {
			return errOf(s.ChangeAgent(t.Context(), key, of.agent, AgentChanges{Name: new("spy")}))
		}},
		{"SuspendAgent", func(s *Store, t *testing.T, of target) error {
			return errOf(s.SuspendAgent(t.Context(), key, of.agent, ""))
		}},
		{"ResumeAgent", func(s *Store, t *testing.T, of target) error {
			return errOf(s.ResumeAgent(t.Context(), key, of.agent, ""))
		}},
		{"SuspendAgents", func(s *Store, t *testing.T, of target) error {
			return errOf(s.SuspendAgents(t.Context(), key, ""))
		}},
		{"ResumeAgents", func(s *Store, t *testing.T, of target) error { return errOf(s.ResumeAgents(t.Context(), key, "")) }},
		{"SetBudget", func(s *Store, t *testing.T, of target) error {
			return errOf(s.SetBudget(t.Context(), key, 1, BudgetForever))
		}},
		{"CheckKey", func(s *Store, t *testing.T, of target) error { return s.CheckKey(t.Context(), key) }},
		{"OwnKey", func(s *Store, t *testing.T, of target) error { return errOf(s.OwnKey(t.Context(), key)) }},
		{"Budget", func(s *Store, t *testing.T, of target) error { return errOf(s.Budget(t.Context(), key)) }},
		{"DeleteBudget", func(s *Store, t *testing.T, of target) error { return s.DeleteBudget(t.Context(), key) }},
		{"SuspendSession", func(s *Store, t *testing.T, of target) error {
			return errOf(s.SuspendSession(t.Context(), key, of.session, ""))
		}},
		{"ResumeSession", func(s *Store, t *testing.T, of target) error {
			return errOf(s.ResumeSession(t.Context(), key, of.session, ""))
		}},
		{"ApproveRequest", func(s *Store, t *testing.T, of target) error {
			return errOf(s.ApproveRequest(t.Context(), key, of.session, of.request, Approval{}))
		}},
		{"DenyRequest", func(s *Store, t *testing.T, of target) error {
			return errOf(s.DenyRequest(t.Context(), key, of.session, of.request, ""))
		}},
		{"CreateAPIKey", func(s *Store, t *testing.T, of target) error {
			return errOf(s.CreateAPIKey(t.Context(), key, APIKey{Organization: key.Organization, Hash: [32]byte{8}}, NewAPIKey{Name: "spy", Role: Viewer}))
		}},
		{"APIKeys", func(s *Store, t *testing.T, of target) error { return errOf(s.APIKeys(t.Context(), key)) }},
		{"RotateAPIKeyOf", func(s *Store, t *testing.T, of target) error {
			return errOf(s.RotateAPIKeyOf(t.Context(), key, of.key, APIKey{Organization: key.Organization, Hash: [32]byte{7}}, 0, nil))
		}},
		{"DeleteAPIKey", func(s *Store, t *testing.T, of target) error { return s.DeleteAPIKey(t.Context(), key, of.key) }},
		{"CreateWebhook", func(s *Store, t *testing.T, of target) error {
			return errOf(s.CreateWebhook(t.Context(), key, NewID(key.Organization), webhooks.Settings{URL: "https://example.com/"}, nil))
		}},
		{"Webhooks", func(s *Store, t *testing.T, of target) error { return errOf(s.Webhooks(t.Context(), key)) }},
		{"Webhook", func(s *Store, t *testing.T, of target) error { return errOf(s.Webhook(t.Context(), key, of.webhook)) }},
		{"ChangeWebhook", func(s *Store, t *testing.T, of target) error {
			return errOf(s.ChangeWebhook(t.Context(), key, of.webhook, nil, newSecret))
		}},
		{"ChangeWebhook with an idempotency key", func(s *Store, t *testing.T, of target) error {
			return errOf(s.ChangeWebhook(t.Context(), key, of.webhook, sealedKey("secret", "credential"), newSecret))
		}},
		{"Deliveries", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Deliveries(t.Context(), key, of.webhook))
		}},
		{"SendAgain", func(s *Store, t *testing.T, of target) error {
			return errOf(s.SendAgain(t.Context(), key, of.webhook, of.delivery, time.Now()))
		}},
		{"SendTest", func(s *Store, t *testing.T, of target) error {
			return errOf(s.SendTest(t.Context(), key, of.webhook, nil, time.Now()))
		}},
		{"DeleteWebhook", func(s *Store, t *testing.T, of target) error { return s.DeleteWebhook(t.Context(), key, of.webhook) }},
		{"CreateTrustedIssuer", func(s *Store, t *testing.T, of target) error {
			return errOf(s.CreateTrustedIssuer(t.Context(), key, TrustedIssuerSettings{Issuer: "https://spy.example"}, nil))
		}},
		{"TrustedIssuers", func(s *Store, t *testing.T, of target) error { return errOf(s.TrustedIssuers(t.Context(), key)) }},
		{"TrustedIssuer", func(s *Store, t *testing.T, of target) error {
			return errOf(s.TrustedIssuer(t.Context(), key, of.issuer))
		}},
		{"ChangeTrustedIssuer", func(s *Store, t *testing.T, of target) error {
			return errOf(s.ChangeTrustedIssuer(t.Context(), key, of.issuer, func(settings *TrustedIssuerSettings) error {
				settings.Description = "spied on"
				return nil
			}))
		}},
		{"DeleteTrustedIssuer", func(s *Store, t *testing.T, of target) error {
			return s.DeleteTrustedIssuer(t.Context(), key, of.issuer)
		}},
		{"OrganizationEvents", func(s *Store, t *testing.T, of target) error {
			return errOf(s.OrganizationEvents(t.Context(), key, 0, 1))
		}},
		{"UsageReport", func(s *Store, t *testing.T, of target) error {
			return errOf(s.UsageReport(t.Context(), key, everyDay()))
		}},
		{"UsageReport of one agent", func(s *Store, t *testing.T, of target) error {
			return errOf(s.UsageReport(t.Context(), key, records.UsageQuery{To: 1, Agent: of.agent}))
		}},
	}, askedByEither(Caller{Key: &key})...)
}

// askedByEither is every operation that an API key and an agent may ask for.
func askedByEither(caller Caller) []asked {
	return []asked{
		{"Session", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Session(t.Context(), caller, of.session))
		}},
		{"EndSession", func(s *Store, t *testing.T, of target) error {
			return errOf(s.EndSession(t.Context(), caller, of.session))
		}},
		{"Charge", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Charge(t.Context(), caller, of.session, Charge{Count: 1, Value: 1}))
		}},
		{"ChargeBatch", func(s *Store, t *testing.T, of target) error {
			return chargeTwice(t.Context(), s, caller, of.session, nil)
		}},
		{"Transactions", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Transactions(t.Context(), caller, Query{Limit: 1}))
		}},
		{"Transactions of a session", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Transactions(t.Context(), caller, Query{Limit: 1, Session: of.session}))
		}},
		{"Events", func(s *Store, t *testing.T, of target) error {
			_, _, err := s.Events(t.Context(), caller, of.agent, "", 1)
			return err
		}},
		{"Sessions", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Sessions(t.Context(), caller, Query{Limit: 1}))
		}},
		{"Sessions of one agent", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Sessions(t.Context(), caller, Query{Limit: 1, Agent: of.agent}))
		}},
		{"CreateChildSession", func(s *Store, t *testing.T, of target) error {
			return errOf(s.CreateChildSession(t.Context(), caller, NewSession{
				Agent: of.agent, Parent: of.session, MaxActions: 1, MaxValue: 1, Lifetime: time.Minute}))
		}},
		{"Tree", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Tree(t.Context(), caller, of.session))
		}},
		{"SessionRequests", func(s *Store, t *testing.T, of target) error {
			return errOf(s.SessionRequests(t.Context(), caller, of.session))
		}},
		{"SessionRequest", func(s *Store, t *testing.T, of target) error {
			return errOf(s.SessionRequest(t.Context(), caller, of.session, of.request))
		}},
		{"SessionUsage", func(s *Store, t *testing.T, of target) error {
			return errOf(s.SessionUsage(t.Context(), caller, of.session))
		}},
		{"Authorize", func(s *Store, t *testing.T, of target) error {
			_, _, err := s.Authorize(t.Context(), caller, of.session, Charge{Count: 1, Value: 1})
			return err
		}},
		{"Transaction", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Transaction(t.Context(), caller, of.transaction))
		}},
		{"Rollback", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Rollback(t.Context(), caller, of.transaction, Rollback{}))
		}},
		{"GrantLease", func(s *Store, t *testing.T, of target) error {
			return errOf(s.GrantLease(t.Context(), caller, of.session, NewLease{MaxActions: 1, MaxValue: 1, Lifetime: time.Minute}))
		}},
		{"SettleLease", func(s *Store, t *testing.T, of target) error {
			return errOf(s.SettleLease(t.Context(), caller, of.lease, NewSettlement{ActionCount: 1}))
		}},
		{"Lease", func(s *Store, t *testing.T, of target) error {
			return errOf(s.Lease(t.Context(), caller, of.lease))
		}},
	}
}

package redisstore

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// answersOfNothing are the answers to a caller when what is asked for does not exist, or is another organization's; nil where nothing
// is named.
var answersOfNothing = map[string]error{
	"Agent": ErrUnknownAgent, "RevokeAgent": ErrUnknownAgent, "DeleteAgent": ErrUnknownAgent,
	"RotateAgentSecret": ErrUnknownAgent, "RotateAgentSecret with all tokens": ErrUnknownAgent, "Families": ErrUnknownAgent,
	"EndFamily": ErrUnknownAgent, "CreateSession": ErrUnknownAgent, "Sessions of one agent": ErrUnknownAgent,
	"Session": ErrUnknownSession, "EndSession": ErrUnknownSession, "Charge": ErrUnknownSession,
	"ChargeBatch": ErrUnknownSession, "ChangeLimits": ErrUnknownSession, "Transactions of a session": ErrUnknownSession,
	"Events": ErrUnknownAgent, "ChangeAgent": ErrUnknownAgent, "SuspendAgent": ErrUnknownAgent, "ResumeAgent": ErrUnknownAgent,
	"SuspendSession": ErrUnknownSession, "ResumeSession": ErrUnknownSession, "ApproveRequest": ErrUnknownSession,
	"DenyRequest": ErrUnknownSession, "CreateChildSession": ErrUnknownSession, "Tree": ErrUnknownSession,
	"SessionRequests": ErrUnknownSession, "SessionRequest": ErrUnknownSession, "GrantLease": ErrUnknownSession,
	"SettleLease": ErrUnknownLease, "Lease": ErrUnknownLease, "SessionUsage": ErrUnknownSession, "Authorize": ErrUnknownSession,
	"Transaction": ErrUnknownTransaction, "Rollback": ErrUnknownTransaction, "UsageReport of one agent": ErrUnknownAgent,
	"RotateAPIKeyOf": ErrUnknownAPIKey, "DeleteAPIKey": ErrUnknownAPIKey,
	"Webhook": ErrUnknownWebhook, "ChangeWebhook": ErrUnknownWebhook, "ChangeWebhook with an idempotency key": ErrUnknownWebhook,
	"DeleteWebhook": ErrUnknownWebhook, "Deliveries": ErrUnknownWebhook, "SendAgain": ErrUnknownWebhook, "SendTest": ErrUnknownWebhook,
	"TrustedIssuer": ErrUnknownIssuer, "ChangeTrustedIssuer": ErrUnknownIssuer, "DeleteTrustedIssuer": ErrUnknownIssuer,
	"TrustedIssuers": nil, "CreateTrustedIssuer": nil,
	"CreateSessionKey": ErrUnknownSession, "SessionKeys": ErrUnknownSession, "DeleteSessionKey": ErrUnknownSession,
	"APIKeys": nil, "CreateAPIKey": nil, "CreateWebhook": nil, "Webhooks": nil, "OrganizationEvents": nil, "UsageReport": nil,
	"Organization": nil, "OwnKey": nil, "CheckKey": nil, "Agents": nil, "CreateAgent": nil, "SuspendAgents": nil, "ResumeAgents": nil, "SetBudget": nil,
	"Budget": nil, "DeleteBudget": nil, "Sessions": nil, "Transactions": nil,
}

func TestAWrongKeyIsRefusedEverywhereAndChangesNothing(t *testing.T) {
	onTenantWithCluster(t, Config{}, roomy, func(t *testing.T, s *Store, w tenant) {
		of, unknown := w.furnished(t, s), NewRootID()
		defer w.unchangedOf(t, s, of, s.keys.Organization(unknown))()
		for name, key := range map[string]APIKey{
			"one bit off":          {Organization: w.key.Organization, Hash: [32]byte{0: 1, 31: 1}},
			"zero":                 {Organization: w.key.Organization},
			"unknown organization": {Organization: unknown, Hash: w.key.Hash},
		} {
			for _, operation := range askedByKey(key) {
				wantError(t, operation.name+" with "+name, operation.ask(s, t, of), ErrInvalidAPIKey)
			}
		}
	})
}

func TestAnotherOrganizationsKeyReadsAndChangesNothing(t *testing.T) {
	onTenantWithCluster(t, Config{}, roomy, func(t *testing.T, s *Store, w tenant) {
		of := w.furnished(t, s)
		foreign := newOrganization(t, s)
		defer w.unchangedOf(t, s, of)()
		for _, operation := range slices.DeleteFunc(askedByKey(foreign), asked.endsItsKey) {
			if _, known := answersOfNothing[operation.name]; !known {
				t.Errorf("no row says what %s is to answer", operation.name)
			}
			want, unknown := answersOfNothing[operation.name], targetIn(NewID(w.agent.ID), NewID(w.agent.ID))
			wantError(t, operation.name, operation.ask(s, t, of), want)
			if want != nil { // it names something
				wantError(t, operation.name+" on what does not exist", operation.ask(s, t, unknown), want)
			}
		}
	})
}

// An agent that shares the caller's cell, and so its slot, is as far away as any other.
func TestATokenReachesNoOtherAgent(t *testing.T) {
	onTenantWithCluster(t, Config{}, roomy, func(t *testing.T, s *Store, w tenant) {
		of := w.furnished(t, s)
		defer w.unchangedOf(t, s, of)()
		for name, id := range map[string]uuid.UUID{"the same cell": NewID(w.agent.ID), "another cell": otherCell(w.agent.ID)} {
			spy := putAgent(t, s, w.key, id)
			for _, operation := range askedByEither(byToken(spy)) {
				wantError(t, operation.name+" from "+name, operation.ask(s, t, of), answersOfNothing[operation.name])
			}
			wantEqual(t, "how many sessions it sees from "+name, len(must(s.Sessions(t.Context(), byToken(spy), Query{Limit: 10}))(t).Items), 0)
		}
	})
}

func TestATokenOfNoAgentIsNotLive(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		grant := w.exchange(t, s)
		other := newTenant(t, s, roomy)
		for _, one := range []tenant{w, other} {
			defer one.unchanged(t, s, s.keys.OrganizationTransactions(one.key.Organization))()
		}
		of := func(organization, agent uuid.UUID) AccessToken {
			return AccessToken{Organization: organization, Agent: agent, Family: grant.Family}
		}
		for name, token := range map[string]AccessToken{
			"no such agent":                of(w.key.Organization, NewID(w.agent.ID)),
			"another organization":         of(other.key.Organization, w.agent.ID),
			"no organization":              of(uuid.Nil, w.agent.ID),
			"another organization's agent": of(w.key.Organization, other.agent.ID),
		} {
			for _, operation := range slices.Concat(askedByEither(Caller{Token: &token}), askedByAgent(token)) {
				err := operation.ask(s, t, targetIn(token.Agent, w.session.ID))
				wantError(t, operation.name+": "+name, err, ErrInvalidToken)
			}
		}
	})
}

// putAgent creates an agent with an id of the test's choice, and exchanges its secret.
func putAgent(t *testing.T, s *Store, key APIKey, id uuid.UUID) Grant {
	t.Helper()
	secret := [32]byte{5}
	must(s.client.Run(t.Context(), flow{}, createAgent.Script, []string{s.keys.Agent(id), s.keys.Events(id), s.keys.AgentOpen(id)},
		key.Organization[:], "neighbour", "read", "", "", secret[:], s.core.AuditAs(t.Context(), kernel.ActorKey), ""))(t)
	return must(s.ExchangeSecret(t.Context(), id, secret, GrantRequest{}))(t)
}

// otherCell returns a fresh id that is in another cell than this one.
func otherCell(id uuid.UUID) uuid.UUID { return kernel.IDIn(kernel.CellOf(id) + 1) }

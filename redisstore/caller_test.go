package redisstore

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// roomy is a session that has room for everything.
var roomy = NewSession{MaxActions: 10, MaxValue: money.USD, MaxLease: time.Hour}

func TestAWrongKeyIsRefusedEverywhereAndChangesNothing(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, roomy)
		of := w.furnished(t, s)
		before := w.contentsOf(t, s, of)
		for name, key := range map[string]APIKey{
			"wrong hash":           {Organization: w.key.Organization, Hash: [32]byte{7}},
			"unknown organization": {Organization: NewRootID(), Hash: w.key.Hash},
		} {
			for _, operation := range askedByKey(key) {
				err := operation.ask(s, t, of)
				wantError(t, operation.name+" with "+name, err, ErrInvalidAPIKey)
			}
		}
		if after := w.contentsOf(t, s, of); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
}

func TestAnotherOrganizationsKeyReadsAndChangesNothing(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, roomy)
		of := w.furnished(t, s)
		foreign := newOrganization(t, s)
		before := w.contentsOf(t, s, of)
		want := map[string]error{
			"Agent": ErrUnknownAgent, "RevokeAgent": ErrUnknownAgent, "DeleteAgent": ErrUnknownAgent,
			"RotateAgentSecret": ErrUnknownAgent, "Families": ErrUnknownAgent, "EndFamily": ErrUnknownAgent, "RotateAgentSecret with all tokens": ErrUnknownAgent,
			"CreateSession": ErrUnknownAgent, "Sessions of one agent": ErrUnknownAgent,
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
			"APIKeys": nil, "CreateAPIKey": nil, "CreateWebhook": nil, "Webhooks": nil, "OrganizationEvents": nil, "UsageReport": nil,
			"Organization": nil, "OwnKey": nil, "CheckKey": nil, "Agents": nil, "CreateAgent": nil, "SuspendAgents": nil, "ResumeAgents": nil, "SetBudget": nil,
			"Budget": nil, "DeleteBudget": nil, "Sessions": nil, "Transactions": nil,
		}
		for _, operation := range slices.DeleteFunc(askedByKey(foreign), asked.endsItsKey) {
			if _, known := want[operation.name]; !known {
				t.Errorf("no row says what %s is to answer", operation.name)
			}
			foreignErr := operation.ask(s, t, of)
			wantError(t, operation.name, foreignErr, want[operation.name])
			if want[operation.name] == nil { // of its own organization only
				continue
			}
			unknownErr := operation.ask(s, t, targetIn(NewID(w.agent.ID), NewID(w.agent.ID)))
			wantError(t, operation.name+" on what does not exist", unknownErr, want[operation.name])
		}
		if after := w.contentsOf(t, s, of); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
}

// An agent that shares the caller's cell, and so its slot, is as far away as any other.
func TestATokenReachesNoOtherAgent(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, roomy)
		of := w.furnished(t, s)
		before := w.contentsOf(t, s, of)
		for name, id := range map[string]uuid.UUID{"the same cell": NewID(w.agent.ID), "another cell": otherCell(w.agent.ID)} {
			spy := putAgent(t, s, w.key, id)
			for _, operation := range askedByEither(byToken(spy)) {
				want := map[string]error{
					"Session": ErrUnknownSession, "EndSession": ErrUnknownSession, "Charge": ErrUnknownSession,
					"Sessions": nil, "Sessions of one agent": ErrUnknownAgent, "Events": ErrUnknownAgent,
					"ChargeBatch": ErrUnknownSession, "Transactions": nil, "Transactions of a session": ErrUnknownSession,
					"CreateChildSession": ErrUnknownSession, "Tree": ErrUnknownSession, "SessionRequests": ErrUnknownSession,
					"SessionRequest": ErrUnknownSession, "GrantLease": ErrUnknownSession, "SettleLease": ErrUnknownLease,
					"Lease": ErrUnknownLease, "SessionUsage": ErrUnknownSession, "Authorize": ErrUnknownSession,
					"Transaction": ErrUnknownTransaction, "Rollback": ErrUnknownTransaction,
				}[operation.name]
				err := operation.ask(s, t, of)
				wantError(t, operation.name+" from "+name, err, want)
			}
			if own := must(s.Sessions(t.Context(), byToken(spy), Query{Limit: 10}))(t); len(own.Items) != 0 {
				t.Errorf("from %s it sees %+v", name, own.Items)
			}
		}
		if after := w.contentsOf(t, s, of); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
}

func TestATokenOfNoAgentIsNotLive(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		grant := w.exchange(t, s)
		gone := AccessToken{Organization: w.key.Organization, Agent: NewID(w.agent.ID), Family: grant.Family}
		elsewhere := grant.AccessToken
		elsewhere.Organization = NewRootID()
		for name, token := range map[string]AccessToken{"no such agent": gone, "another organization's": elsewhere} {
			for _, operation := range askedByEither(Caller{Token: &token}) {
				err := operation.ask(s, t, targetIn(token.Agent, w.session.ID))
				wantError(t, operation.name+": "+name, err, ErrInvalidToken)
			}
			wantError(t, "RevokeFamily: "+name, s.RevokeFamily(t.Context(), token, grant.Family), ErrInvalidToken)
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

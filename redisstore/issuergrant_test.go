package redisstore

import (
	"reflect"
	"testing"

	"github.com/google/uuid"
	"remit/internal/event"
	"remit/redisstore/internal/kernel"
)

func TestAnIssuerIsFoundByItsNameForAnAgentOfItsOrganization(t *testing.T) {
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w, other := newTenant(t, s, NewSession{MaxActions: 1}), newTenant(t, s, NewSession{MaxActions: 1})
		trusted := w.trust(t, s, "https://one.example")
		got, organization := must2(s.IssuerFor(t.Context(), w.agent.ID, "https://one.example"))(t)
		wantEqual(t, "the issuer", got, trusted)
		wantEqual(t, "its organization", organization, w.key.Organization)
		for name, ask := range map[string]struct {
			agent uuid.UUID
			name  string
		}{
			"another name":           {w.agent.ID, "https://one.example/"},
			"no name":                {w.agent.ID, ""},
			"another's agent":        {other.agent.ID, "https://one.example"},
			"an agent that is none":  {NewID(w.agent.ID), "https://one.example"},
			"the organization":       {w.key.Organization, "https://one.example"},
			"the id instead of name": {w.agent.ID, string(trusted.ID[:])},
		} {
			wantError(t, name, errOf2(s.IssuerFor(t.Context(), ask.agent, ask.name)), ErrUnknownIssuer)
		}
	})
}

func TestAGrantByAnIssuerIsWithinWhatItsAgentMayDo(t *testing.T) {
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w, other := newTenant(t, s, NewSession{MaxActions: 1}), newTenant(t, s, NewSession{MaxActions: 1})
		trusted := w.trust(t, s, "https://one.example")
		grant := func(agent uuid.UUID, asked GrantRequest) (Grant, error) {
			return s.GrantByIssuer(t.Context(), w.key.Organization, agent, trusted, asked)
		}
		whole := must(grant(w.agent.ID, GrantRequest{}))(t)
		want := Grant{AccessToken: whole.AccessToken, Scopes: w.agent.Scopes, Audience: []string{Self}}
		if !reflect.DeepEqual(whole, want) || kernel.CellOf(whole.Family) != kernel.CellOf(w.agent.ID) || whole.Organization != w.key.Organization {
			t.Errorf("granted %+v, want %+v", whole, want)
		}
		wantError(t, "its access token", s.CheckToken(t.Context(), whole.AccessToken), nil)
		wantGone(t, s, s.keys.Family(w.agent.ID, whole.Family)) // which no agent can refresh
		events := w.eventsOf(t, s, w.agent.ID)
		last := events[len(events)-1]
		if last.Type != "token.issued" || last.Issuer != trusted.ID || last.Family != whole.Family || last.Actor.Type != event.ByAgent {
			t.Errorf("the event is %+v", last)
		}
		narrowed := must(grant(w.agent.ID, GrantRequest{Scopes: w.agent.Scopes[:1], Audience: []string{"https://api.example"}}))(t)
		wantEqual(t, "the scopes", narrowed.Scopes, w.agent.Scopes[:1])
		wantEqual(t, "the audience", narrowed.Audience, []string{"https://api.example"})
		wantError(t, "a scope that is not held", errOf(grant(w.agent.ID, GrantRequest{Scopes: []string{"admin"}})), &ScopeError{Scope: "admin"})
		wantError(t, "another organization's agent", errOf(grant(other.agent.ID, GrantRequest{})), ErrInvalidCredentials)
		wantError(t, "no agent", errOf(grant(NewID(w.agent.ID), GrantRequest{})), ErrInvalidCredentials)
		must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, ""))(t)
		if _, err := grant(w.agent.ID, GrantRequest{}); !kernel.IsSuspended(err) {
			t.Errorf("while it is suspended: %v", err)
		}
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		wantError(t, "after the revocation", errOf(grant(w.agent.ID, GrantRequest{})), ErrInvalidCredentials)
		wantError(t, "its access token after the revocation", s.CheckToken(t.Context(), whole.AccessToken), ErrInvalidToken)
	})
}

// Reading an issuer's keys takes seconds at worst. What the organization decides meanwhile counts.
func TestAnIssuerThatIsTrustedNoMoreGrantsNothing(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		for name, change := range map[string]func(TrustedIssuer){
			"a change": func(i TrustedIssuer) {
				must(s.ChangeTrustedIssuer(t.Context(), w.key, i.ID, func(settings *TrustedIssuerSettings) error {
					settings.Rules[0].Claims["sub"] = "other"
					return nil
				}))(t)
			},
			"a deletion": func(i TrustedIssuer) {
				mustDo(t, s.DeleteTrustedIssuer(t.Context(), w.key, i.ID))
			},
			"another that is the same": func(i TrustedIssuer) {
				mustDo(t, s.DeleteTrustedIssuer(t.Context(), w.key, i.ID))
				w.trust(t, s, i.Settings.Issuer)
			},
		} {
			trusted := w.trust(t, s, "https://issuer.example/"+name)
			change(trusted)
			wantError(t, name, errOf(s.GrantByIssuer(t.Context(), w.key.Organization, w.agent.ID, trusted, GrantRequest{})), ErrUnknownIssuer)
		}
	})
}

// A workload that asks without end takes no more than the rate of its agent.
func TestGrantsByAnIssuerArePaced(t *testing.T) {
	t.Parallel()
	onMiniredis(t, Config{Rates: Rates{Agent: 1, Organization: 1000}}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		trusted := w.trust(t, s, "https://one.example")
		for range kernel.BurstTime {
			must(s.GrantByIssuer(t.Context(), w.key.Organization, w.agent.ID, trusted, GrantRequest{}))(t)
		}
		eventually(t, "the rate is reached", func() bool {
			return kernel.IsRefusedCreation(errOf(s.GrantByIssuer(t.Context(), w.key.Organization, w.agent.ID, trusted, GrantRequest{})))
		})
	})
}

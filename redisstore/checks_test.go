package redisstore

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestARefreshTokenThatIsNotLiveIsRefused(t *testing.T) {
	onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		grant, other := w.exchange(t, s), newTenant(t, s, roomy)
		w.refresh(t, s, grant.Family, 1, 2)
		defer w.refresh(t, s, grant.Family, 2, 3)
		defer w.unchanged(t, s)()
		check := func(name string, agent, family uuid.UUID, generation uint32) {
			got, expires, err := s.CheckRefresh(t.Context(), agent, family, generation)
			if wantError(t, name, err, ErrInvalidRefreshToken); !reflect.DeepEqual(got, Grant{}) || !expires.IsZero() {
				t.Errorf("%s: %+v, %s", name, got, expires)
			}
		}
		check("spent, within the grace", w.agent.ID, grant.Family, 1)
		check("never issued", w.agent.ID, grant.Family, 0)
		for name, token := range map[string]struct{ agent, family uuid.UUID }{
			"missing family":            {w.agent.ID, NewID(w.agent.ID)},
			"unknown agent":             {NewRootID(), grant.Family},
			"unknown agent of the cell": {NewID(w.agent.ID), grant.Family},
			"agent of another cell":     {other.agent.ID, grant.Family},
		} {
			for generation := uint32(1); generation <= 2; generation++ {
				check(name, token.agent, token.family, generation)
				wantError(t, name, errOf(s.RotateRefresh(t.Context(), token.agent, token.family, generation, GrantRequest{})), ErrInvalidRefreshToken)
			}
		}
	})
}

func TestScopesOfAnExchangeNarrowTheWholeFamily(t *testing.T) {
	onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		w.wantScopes(t, w.exchange(t, s), 1, []string{"read", "write"})
		for _, scopes := range [][]string{{"read"}, {"write"}, {"write", "read"}, {"read", "write"}} {
			grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, withScopes(scopes...)))(t)
			w.wantScopes(t, grant, 1, scopes)
			for generation := uint32(1); generation <= 3; generation++ {
				for range 2 { // the first answer was lost
					next := must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, GrantRequest{}))(t)
					w.wantScopes(t, next, generation+1, scopes)
				}
				for _, current := range []uint32{generation + 1, generation + 2, 1 << 31} { // or ahead of Redis; asking spends nothing
					checked, expires := must2(s.CheckRefresh(t.Context(), w.agent.ID, grant.Family, current))(t)
					w.wantScopes(t, checked, current, scopes)
					if late := time.Until(expires) - defaultRefreshLifetime; late.Abs() > time.Minute {
						t.Errorf("it expires at %s, %s from a week", expires, late)
					}
				}
			}
		}
	})
}

func TestScopesOfARefreshNarrowThatTokenAlone(t *testing.T) {
	onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		whole := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, withScopes("read", "write")))(t)
		for _, family := range []uuid.UUID{w.exchange(t, s).Family, whole.Family} {
			for _, step := range []struct {
				generation uint32
				ask, want  []string
			}{
				{1, []string{"read"}, []string{"read"}},
				{1, nil, []string{"read", "write"}}, // the predecessor again, within the grace
				{1, []string{"write"}, []string{"write"}},
				{2, []string{"write"}, []string{"write"}},
				{3, nil, []string{"read", "write"}},
				{9, []string{"read"}, []string{"read"}}, // ahead of Redis
				{10, []string{"write", "read"}, []string{"write", "read"}},
			} {
				grant := must(s.RotateRefresh(t.Context(), w.agent.ID, family, step.generation, withScopes(step.ask...)))(t)
				w.wantScopes(t, grant, step.generation+1, step.want)
			}
		}
	})
}

func TestScopesThatAreNotHeldAreRefusedAndNothingIsSpent(t *testing.T) {
	onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, withScopes("read")))(t)
		w.refresh(t, s, grant.Family, 1, 2)
		defer w.refresh(t, s, grant.Family, 2, 3)
		defer w.unchanged(t, s, s.keys.Family(w.agent.ID, grant.Family))()
		for name, test := range map[string]struct {
			ask               []string
			refused, exchange string // the first that is not held, by the family and by the agent
		}{
			"held by the agent alone":      {[]string{"write"}, "write", ""},
			"held by neither":              {[]string{"admin"}, "admin", "admin"},
			"one that is, one that is not": {[]string{"read", "admin"}, "admin", "admin"},
			"part of a name":               {[]string{"rea"}, "rea", "rea"},
			"more than a name":             {[]string{"reads"}, "reads", "reads"},
			"a pattern":                    {[]string{"r..d"}, "r..d", "r..d"},
			"several":                      {[]string{"x", "y"}, "x", "x"},
		} {
			for generation := uint32(1); generation <= 3; generation++ { // spent within the grace, current, ahead
				got, err := s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, withScopes(test.ask...))
				wantError(t, name, err, &ScopeError{Scope: test.refused})
				wantEqual(t, name, got, Grant{})
			}
			if test.exchange != "" {
				err := errOf(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, withScopes(test.ask...)))
				wantError(t, name+", exchange", err, &ScopeError{Scope: test.exchange})
			}
		}
	})
}

// A wrong credential must not learn what the agent may do.
func TestScopesAndAudiencesAreCheckedAfterTheCredential(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		w.allow(t, s, []string{})
		grant := w.exchange(t, s)
		w.refresh(t, s, grant.Family, 1, 2)
		for _, asked := range []GrantRequest{{Scopes: []string{"admin"}}, audiences(mail)} {
			wantError(t, "a wrong secret", errOf(s.ExchangeSecret(t.Context(), w.agent.ID, [32]byte{9}, asked)), ErrInvalidCredentials)
			gone := errOf(s.RotateRefresh(t.Context(), w.agent.ID, NewID(w.agent.ID), 1, asked))
			wantError(t, "a family that is gone", gone, ErrInvalidRefreshToken)
		}
		reuse := errOf(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, withScopes("admin")))
		wantError(t, "reuse", reuse, ErrTokenReused)
		w.wantRevoked(t, s, grant, 2)
	})
}

func TestScopesOfAnAgentThatHasNoneCannotBeNarrowed(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		w.agent = must(s.CreateAgent(t.Context(), w.key, Agent{Name: "scout"}, w.secret, nil))(t)
		asked := withScopes("read")
		wantError(t, "exchange", errOf(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, asked)), &ScopeError{Scope: "read"})
		grant := w.exchange(t, s)
		w.wantScopes(t, grant, 1, []string{})
		wantError(t, "refresh", errOf(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, asked)), &ScopeError{Scope: "read"})
		got, _ := must2(s.CheckRefresh(t.Context(), w.agent.ID, grant.Family, 1))(t)
		w.wantScopes(t, got, 1, []string{})
	})
}

func withScopes(scopes ...string) GrantRequest { return GrantRequest{Scopes: scopes} }

// wantScopes checks what a grant of the tenant's agent entitles to, whether or not it is replayed.
func (w tenant) wantScopes(t *testing.T, got Grant, generation uint32, scopes []string) {
	t.Helper()
	want := Grant{
		AccessToken: AccessToken{Organization: w.key.Organization, Agent: w.agent.ID, Family: got.Family},
		Scopes:      scopes, Audience: []string{Self}, Generation: generation, Replayed: got.Replayed,
	}
	wantEqual(t, "the grant", got, want)
}

package redisstore

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

func TestCheckTokenAcceptsATokenUntilItsAgentOrFamilyIsRevoked(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, stranger := newTenant(t, s, NewSession{MaxActions: 1}), newTenant(t, s, NewSession{MaxActions: 1})
		grant, ended := w.exchange(t, s), w.exchange(t, s)
		revoked := newTenant(t, s, NewSession{MaxActions: 1})
		dead := revoked.exchange(t, s)
		wantError(t, "before the family is revoked", s.CheckToken(t.Context(), ended.AccessToken), nil)
		mustDo(t, s.RevokeFamily(t.Context(), grant.AccessToken, ended.Family))
		must(s.RevokeAgent(t.Context(), revoked.key, revoked.agent.ID))(t)
		before := w.contents(t, s)
		of := func(organization, agent, family uuid.UUID) AccessToken {
			return AccessToken{Organization: organization, Agent: agent, Family: family}
		}
		mine := w.key.Organization
		for name, test := range map[string]struct {
			token AccessToken
			want  error
		}{
			"live":                     {grant.AccessToken, nil},
			"revoked family":           {ended.AccessToken, ErrInvalidToken},
			"revoked agent":            {dead.AccessToken, ErrInvalidToken},
			"unknown agent":            {of(mine, NewID(w.agent.ID), grant.Family), ErrInvalidToken},
			"another organization":     {of(stranger.key.Organization, w.agent.ID, grant.Family), ErrInvalidToken},
			"no organization":          {of(uuid.Nil, w.agent.ID, grant.Family), ErrInvalidToken},
			"another's organization's": {of(mine, stranger.agent.ID, grant.Family), ErrInvalidToken},
		} {
			wantError(t, name, s.CheckToken(t.Context(), test.token), test.want)
		}
		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
}

func TestCheckSecretReturnsTheAgentsOrganization(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, revoked := newTenant(t, s, NewSession{MaxActions: 1}), newTenant(t, s, NewSession{MaxActions: 1})
		must(s.RevokeAgent(t.Context(), revoked.key, revoked.agent.ID))(t)
		w.exchange(t, s) // for an unused secret is replaced, not kept
		previous := w.secret
		w.rotateSecret(t, s, time.Hour)
		for name, test := range map[string]struct {
			agent  uuid.UUID
			secret [32]byte
			want   error
		}{
			"current":               {w.agent.ID, w.secret, nil},
			"previous, in grace":    {w.agent.ID, previous, nil},
			"wrong":                 {w.agent.ID, [32]byte{99}, ErrInvalidCredentials},
			"empty":                 {w.agent.ID, [32]byte{}, ErrInvalidCredentials},
			"unknown agent":         {NewID(w.agent.ID), w.secret, ErrInvalidCredentials},
			"unknown, empty secret": {NewID(w.agent.ID), [32]byte{}, ErrInvalidCredentials},
			"revoked agent":         {revoked.agent.ID, revoked.secret, ErrInvalidCredentials},
		} {
			want := w.key.Organization
			if test.want != nil {
				want = uuid.Nil
			}
			organization, err := s.CheckSecret(t.Context(), test.agent, test.secret)
			if wantError(t, name, err, test.want); organization != want {
				t.Errorf("%s: organization %s, want %s", name, organization, want)
			}
		}
		// The current secret is in use now, so the next rotation keeps it for its grace.
		must(s.RotateAgentSecret(t.Context(), w.key, w.agent.ID, SecretRotation{Hash: [32]byte{77}, Grace: time.Hour}, nil))(t)
		must(s.CheckSecret(t.Context(), w.agent.ID, w.secret))(t)
		wantError(t, "the one before that", errOf(s.CheckSecret(t.Context(), w.agent.ID, previous)), ErrInvalidCredentials)
	})
}

func TestCheckSecretRefusesThePreviousOneAfterItsGrace(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		w.exchange(t, s)
		previous := w.secret
		w.rotateSecret(t, s, 30*time.Millisecond)
		eventually(t, "the grace is over", func() bool {
			_, err := s.CheckSecret(t.Context(), w.agent.ID, previous)
			return err == ErrInvalidCredentials
		})
		must(s.CheckSecret(t.Context(), w.agent.ID, w.secret))(t)
	})
}

func TestCheckRefreshReturnsTheGrantOfAnUnspentToken(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		narrowed := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, withScopes("write")))(t)
		for _, family := range []Grant{w.exchange(t, s), narrowed} {
			w.refresh(t, s, family.Family, 1, 2)
			for name, generation := range map[string]uint32{"current": 2, "ahead of Redis": 3, "far ahead": 1 << 31} {
				want := family
				want.Generation = generation
				for range 2 { // asking spends nothing
					grant, expires, err := s.CheckRefresh(t.Context(), w.agent.ID, family.Family, generation)
					if err != nil || !reflect.DeepEqual(grant, want) {
						t.Errorf("%s: %+v, %v; want %+v", name, grant, err, want)
					}
					if late := time.Until(expires) - defaultRefreshLifetime; late.Abs() > time.Minute {
						t.Errorf("%s: expires at %s, %s from a week", name, expires, late)
					}
				}
			}
			w.refresh(t, s, family.Family, 2, 3)
		}
	})
}

func TestCheckRefreshRefusesWhatIsNotLive(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		grant, ended, marked := w.exchange(t, s), w.exchange(t, s), w.exchange(t, s).Family
		w.refresh(t, s, grant.Family, 1, 2)
		mustDo(t, s.RevokeFamily(t.Context(), grant.AccessToken, ended.Family))
		must(peek(t, s).HSet(t.Context(), s.keys.Agent(w.agent.ID), kernel.FamilyField(marked), 1).Result())(t)
		revoked := newTenant(t, s, NewSession{MaxActions: 1})
		dead := revoked.exchange(t, s)
		must(s.RevokeAgent(t.Context(), revoked.key, revoked.agent.ID))(t)
		before := w.contents(t, s)
		for name, token := range map[string]struct {
			agent, family uuid.UUID
			generation    uint32
		}{
			"spent, within the grace": {w.agent.ID, grant.Family, 1},
			"never issued":            {w.agent.ID, grant.Family, 0},
			"missing family":          {w.agent.ID, NewID(w.agent.ID), 1},
			"revoked family":          {w.agent.ID, ended.Family, 1},
			"revoked family, ahead":   {w.agent.ID, ended.Family, 2},
			"marked, its key is kept": {w.agent.ID, marked, 1},
			"revoked agent":           {revoked.agent.ID, dead.Family, 1},
			"unknown agent":           {NewID(w.agent.ID), grant.Family, 2},
			"agent of another cell":   {revoked.agent.ID, grant.Family, 2},
		} {
			got, expires, err := s.CheckRefresh(t.Context(), token.agent, token.family, token.generation)
			if wantError(t, name, err, ErrInvalidRefreshToken); !reflect.DeepEqual(got, Grant{}) || !expires.IsZero() {
				t.Errorf("%s: %+v, %s", name, got, expires)
			}
		}
		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
		w.refresh(t, s, grant.Family, 2, 3)
	})
}

func TestScopesOfAnExchangeNarrowTheWholeFamily(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		for _, scopes := range [][]string{{"read"}, {"write"}, {"write", "read"}, {"read", "write"}} {
			grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, withScopes(scopes...)))(t)
			w.wantScopes(t, grant, 1, scopes)
			for generation := uint32(1); generation <= 3; generation++ {
				w.wantScopes(t, must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, GrantRequest{}))(t), generation+1, scopes)
				again := must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, GrantRequest{}))(t) // the answer was lost
				w.wantScopes(t, asFirst(t, again), generation+1, scopes)
			}
		}
	})
}

func TestScopesOfARefreshNarrowThatTokenAlone(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
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
				if grant.Replayed {
					grant = asFirst(t, grant)
				}
				w.wantScopes(t, grant, step.generation+1, step.want)
			}
		}
	})
}

func TestScopesThatAreNotHeldAreRefusedAndNothingIsSpent(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, withScopes("read")))(t)
		w.refresh(t, s, grant.Family, 1, 2)
		keys := []string{s.keys.Agent(w.agent.ID), s.keys.Family(w.agent.ID, grant.Family)}
		before := contents(t, s, keys...)
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
			"every pattern":                {[]string{".*"}, ".*", ".*"},
			"another case":                 {[]string{"READ"}, "READ", "READ"},
			"several":                      {[]string{"x", "y"}, "x", "x"},
		} {
			for generation := uint32(1); generation <= 3; generation++ { // spent within the grace, current, ahead
				got, err := s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, withScopes(test.ask...))
				wantError(t, name, err, &ScopeError{Scope: test.refused})
				if !reflect.DeepEqual(got, Grant{}) {
					t.Errorf("%s: %+v", name, got)
				}
			}
			if test.exchange != "" {
				_, err := s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, withScopes(test.ask...))
				wantError(t, name+", exchange", err, &ScopeError{Scope: test.exchange})
			}
		}
		if after := contents(t, s, keys...); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
		w.refresh(t, s, grant.Family, 2, 3)
	})
}

// An unauthorized caller does not learn the usage.
func TestScopesAreCheckedAfterTheCredential(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		admin, ctx := withScopes("admin"), t.Context()
		wantError(t, "exchange with a wrong secret", errOf(s.ExchangeSecret(ctx, w.agent.ID, [32]byte{9}, admin)), ErrInvalidCredentials)
		gone := errOf(s.RotateRefresh(ctx, w.agent.ID, NewID(w.agent.ID), 1, admin))
		wantError(t, "refresh of a family that is gone", gone, ErrInvalidRefreshToken)

		grant := w.exchange(t, s)
		w.refresh(t, s, grant.Family, 1, 2)
		wantError(t, "reuse", errOf(s.RotateRefresh(ctx, w.agent.ID, grant.Family, 1, admin)), ErrTokenReused)
		w.wantRevoked(t, s, grant, 2)
	})
}

func TestScopesOfAnAgentThatHasNoneCannotBeNarrowed(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		key, secret := newOrganization(t, s), [32]byte{2}
		w := tenant{key: key, secret: secret, agent: must(s.CreateAgent(t.Context(), key, Agent{Name: "scout"}, secret, nil))(t)}
		wantError(t, "exchange", errOf(s.ExchangeSecret(t.Context(), w.agent.ID, secret, withScopes("read"))), &ScopeError{Scope: "read"})
		grant := w.exchange(t, s)
		w.wantScopes(t, grant, 1, []string{})
		wantError(t, "refresh", errOf(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, withScopes("read"))), &ScopeError{Scope: "read"})
		got, _, err := s.CheckRefresh(t.Context(), w.agent.ID, grant.Family, 1)
		wantError(t, "check", err, nil)
		w.wantScopes(t, got, 1, []string{})
	})
}

func withScopes(scopes ...string) GrantRequest { return GrantRequest{Scopes: scopes} }

// asFirst returns a grant that was replayed as it was granted first.
func asFirst(t *testing.T, g Grant) Grant {
	t.Helper()
	if !g.Replayed {
		t.Error("the grant is not replayed")
	}
	g.Replayed = false
	return g
}

// wantScopes checks what a grant of the tenant's agent entitles to.
func (w tenant) wantScopes(t *testing.T, got Grant, generation uint32, scopes []string) {
	t.Helper()
	want := Grant{
		AccessToken: AccessToken{Organization: w.key.Organization, Agent: w.agent.ID, Family: got.Family},
		Scopes:      scopes, Audience: []string{Self}, Generation: generation,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

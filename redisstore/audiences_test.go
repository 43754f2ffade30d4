package redisstore

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	mail, wiki = "https://mail.example/mcp", "https://wiki.example"
	local      = "http://127.0.0.1:9/mcp"
	urn        = "urn:example:mail"
)

func audiences(of ...string) GrantRequest { return GrantRequest{Audience: of} }

// allow sets the audiences that tokens of the tenant's agent may have; nil is any.
func (w tenant) allow(t *testing.T, s *Store, audiences []string) {
	t.Helper()
	must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, AgentChanges{Audiences: &audiences}))(t)
}

func TestATokenMayBeForTheAudiencesOfItsAgent(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		for _, test := range []struct {
			name    string
			allowed []string
			asked   []string
			refused string
		}{
			{"any, asked for none", nil, nil, ""},
			{"any, the issuer", nil, []string{Self}, ""},
			{"any, an https URI", nil, []string{mail}, ""},
			{"any, a URI of this machine", nil, []string{local}, ""},
			{"any, several with the issuer", nil, []string{wiki, Self, mail}, ""},
			{"any, another scheme", nil, []string{mail, urn}, urn},
			{"any, https inside", nil, []string{"urn:https://x"}, "urn:https://x"},
			{"none, asked for none", []string{}, nil, ""},
			{"none, the issuer", []string{}, []string{Self}, ""},
			{"none, an https URI", []string{}, []string{mail}, mail},
			{"none, its mark", []string{}, []string{"-"}, "-"},
			{"some, one of them", []string{urn, mail}, []string{mail}, ""},
			{"some, all and the issuer", []string{urn, mail}, []string{Self, mail, urn}, ""},
			{"some, another", []string{urn, mail}, []string{mail, wiki}, wiki},
			{"some, with a slash behind", []string{wiki}, []string{wiki + "/"}, wiki + "/"},
			{"some, in capitals", []string{wiki}, []string{strings.ToUpper(wiki)}, strings.ToUpper(wiki)},
			{"some, the head of one", []string{mail}, []string{"https://mail.example"}, "https://mail.example"},
			{"some, a pattern", []string{mail}, []string{"https://m..l.example/mcp"}, "https://m..l.example/mcp"},
		} {
			w.allow(t, s, test.allowed)
			grant, err := s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, audiences(test.asked...))
			if test.refused != "" {
				wantError(t, test.name, err, &AudienceError{Audience: test.refused})
				continue
			}
			wantError(t, test.name, err, nil)
			want := orSelf(test.asked)
			for generation := uint32(1); generation <= 2; generation++ {
				if !slices.Equal(grant.Audience, want) || grant.Generation != generation {
					t.Errorf("%s, generation %d: for %q, want %q", test.name, grant.Generation, grant.Audience, want)
				}
				checked, _, err := s.CheckRefresh(t.Context(), w.agent.ID, grant.Family, generation)
				if wantError(t, test.name+", checked", err, nil); !slices.Equal(checked.Audience, want) {
					t.Errorf("%s: the refresh token is for %q, want %q", test.name, checked.Audience, want)
				}
				grant = must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, GrantRequest{}))(t)
			}
		}
	})
}

func TestARefreshIsForThoseOfTheGrantAndSpendsNothingForOthers(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		for _, test := range []struct {
			name           string
			granted, asked []string
			refused        string
		}{
			{"all of them", []string{mail, wiki}, []string{wiki, mail}, ""},
			{"one of them", []string{mail, wiki}, []string{wiki}, ""},
			{"another", []string{mail, wiki}, []string{mail, local}, local},
			{"the issuer, which was not named", []string{mail}, []string{Self}, Self},
			{"the issuer alone", []string{Self, mail}, []string{Self}, ""},
			{"the issuer, which none needs to name", nil, []string{Self}, ""},
			{"the issuer, which was named", []string{Self}, []string{Self}, ""},
			{"another than the issuer", nil, []string{mail}, mail},
			{"another beside the issuer", []string{Self}, []string{Self, mail}, mail},
			{"the end of one", []string{"https://a.example/urn:x"}, []string{"urn:x"}, "urn:x"},
		} {
			first := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, audiences(test.granted...)))(t)
			key := s.keys.Family(w.agent.ID, first.Family)
			must(s.RotateRefresh(t.Context(), w.agent.ID, first.Family, 1, GrantRequest{}))(t)
			before := contents(t, s, key)
			for generation := uint32(3); generation >= 1; generation-- { // ahead, current, spent within the grace
				if test.refused == "" && generation != 2 {
					continue
				}
				grant, err := s.RotateRefresh(t.Context(), w.agent.ID, first.Family, generation, audiences(test.asked...))
				if test.refused == "" {
					if wantError(t, test.name, err, nil); !slices.Equal(grant.Audience, test.asked) {
						t.Errorf("%s: for %q, want %q", test.name, grant.Audience, test.asked)
					}
					again := must(s.RotateRefresh(t.Context(), w.agent.ID, first.Family, 3, GrantRequest{}))(t)
					if want := orSelf(test.granted); !slices.Equal(again.Audience, want) {
						t.Errorf("%s: the next is for %q, want %q", test.name, again.Audience, want)
					}
					continue
				}
				wantError(t, test.name, err, &AudienceError{Audience: test.refused})
				if !reflect.DeepEqual(grant, Grant{}) {
					t.Errorf("%s: %+v", test.name, grant)
				}
			}
			if after := contents(t, s, key); test.refused != "" && !reflect.DeepEqual(after, before) {
				t.Errorf("%s: %q became %q", test.name, before, after)
			}
		}
	})
}

func TestARepeatedRefreshMayNameItsAudienceAgain(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, audiences(mail, wiki)))(t)
		for range 3 { // the answers were lost
			got := must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, audiences(wiki)))(t)
			if !slices.Equal(got.Audience, []string{wiki}) || got.Generation != 2 {
				t.Errorf("%+v", got)
			}
		}
	})
}

func TestNarrowedAudiencesOfAnAgentCountAtTheNextRefresh(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		both := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, audiences(mail, wiki)))(t)
		alone := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, audiences(mail)))(t)
		own := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, audiences(Self, mail)))(t)
		w.allow(t, s, []string{wiki})
		refresh := func(of Grant, generation uint32, asked ...string) ([]string, error) {
			got, err := s.RotateRefresh(t.Context(), w.agent.ID, of.Family, generation, audiences(asked...))
			return got.Audience, err
		}
		_, err := refresh(both, 1, mail)
		wantError(t, "one that it lost", err, &AudienceError{Audience: mail})
		if got := must(refresh(both, 1))(t); !slices.Equal(got, []string{wiki}) {
			t.Errorf("of two it lost one: for %q", got)
		}
		if got := must(refresh(own, 1))(t); !slices.Equal(got, []string{Self}) {
			t.Errorf("the issuer is left: for %q", got)
		}
		_, err = refresh(alone, 1)
		wantError(t, "nothing is left", err, &AudienceError{Audience: mail})
		_, _, err = s.CheckRefresh(t.Context(), w.agent.ID, alone.Family, 1)
		wantError(t, "nothing is left, checked", err, &AudienceError{Audience: mail})
		w.allow(t, s, nil)
		if got := must(refresh(alone, 1))(t); !slices.Equal(got, []string{mail}) {
			t.Errorf("it is back: for %q", got)
		}
		if got := must(refresh(both, 2))(t); !slices.Equal(got, []string{mail, wiki}) {
			t.Errorf("both are back: for %q", got)
		}
	})
}

// A wrong credential must not learn what the agent may do.
func TestAudiencesAreCheckedAfterTheCredential(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		w.allow(t, s, []string{})
		_, err := s.ExchangeSecret(t.Context(), w.agent.ID, [32]byte{9}, audiences(mail))
		wantError(t, "exchange with a wrong secret", err, ErrInvalidCredentials)
		_, err = s.RotateRefresh(t.Context(), w.agent.ID, NewID(w.agent.ID), 1, audiences(mail))
		wantError(t, "refresh of a family that is gone", err, ErrInvalidRefreshToken)
	})
}

func TestAFamilyForTheIssuerStoresNoAudience(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		for _, test := range []struct {
			asked []string
			want  []string
		}{
			{nil, []string{"c", "g", "r"}},
			{[]string{Self}, []string{"c", "g", "r"}},
			{[]string{Self, mail}, []string{"au", "c", "g", "r"}},
		} {
			grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, audiences(test.asked...)))(t)
			kept := must(peek(t, s).HGetAll(t.Context(), s.keys.Family(w.agent.ID, grant.Family)).Result())(t)
			if fields := slices.Sorted(maps.Keys(kept)); !slices.Equal(fields, test.want) {
				t.Errorf("for %q: %q", test.asked, kept)
			}
		}
	})
}

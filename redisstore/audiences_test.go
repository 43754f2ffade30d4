package redisstore

import (
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
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
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
				wantEqual(t, test.name, grant.Audience, want)
				wantEqual(t, test.name+": the generation", grant.Generation, generation)
				checked, _ := must2(s.CheckRefresh(t.Context(), w.agent.ID, grant.Family, generation))(t)
				wantEqual(t, test.name+", checked", checked.Audience, want)
				grant = must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, GrantRequest{}))(t)
			}
		}
	})
}

func TestARefreshIsForThoseOfTheGrantAndSpendsNothingForOthers(t *testing.T) {
	onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
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
			{"another than the issuer", nil, []string{mail}, mail},
			{"the end of one", []string{"https://a.example/urn:x"}, []string{"urn:x"}, "urn:x"},
		} {
			first := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, audiences(test.granted...)))(t)
			key := s.keys.Family(w.agent.ID, first.Family)
			must(s.RotateRefresh(t.Context(), w.agent.ID, first.Family, 1, GrantRequest{}))(t)
			refresh := func(generation uint32, asked ...string) (Grant, error) {
				return s.RotateRefresh(t.Context(), w.agent.ID, first.Family, generation, audiences(asked...))
			}
			if test.refused != "" {
				unchanged := w.unchanged(t, s, key)
				for generation := uint32(1); generation <= 3; generation++ { // spent within the grace, current, ahead
					wantError(t, test.name, errOf(refresh(generation, test.asked...)), &AudienceError{Audience: test.refused})
				}
				unchanged()
				continue
			}
			for range 2 { // the first answer was lost
				grant := must(refresh(2, test.asked...))(t)
				wantEqual(t, test.name, grant.Audience, test.asked)
				wantEqual(t, test.name+": the generation", grant.Generation, 3)
			}
			wantEqual(t, test.name+": the next", must(refresh(3))(t).Audience, orSelf(test.granted))
		}
	})
}

func TestNarrowedAudiencesOfAnAgentCountAtTheNextRefresh(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		both := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, audiences(mail, wiki)))(t)
		alone := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, audiences(mail)))(t)
		own := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, audiences(Self, mail)))(t)
		w.allow(t, s, []string{wiki})
		refresh := func(of Grant, generation uint32, asked ...string) ([]string, error) {
			got, err := s.RotateRefresh(t.Context(), w.agent.ID, of.Family, generation, audiences(asked...))
			return got.Audience, err
		}
		wantError(t, "one that it lost", errOf(refresh(both, 1, mail)), &AudienceError{Audience: mail})
		wantEqual(t, "of two it lost one", must(refresh(both, 1))(t), []string{wiki})
		wantEqual(t, "the issuer is left", must(refresh(own, 1))(t), []string{Self})
		wantError(t, "nothing is left", errOf(refresh(alone, 1)), &AudienceError{Audience: mail})
		wantError(t, "nothing is left, checked", errOf2(s.CheckRefresh(t.Context(), w.agent.ID, alone.Family, 1)), &AudienceError{Audience: mail})
		w.allow(t, s, nil)
		wantEqual(t, "it is back", must(refresh(alone, 1))(t), []string{mail})
		wantEqual(t, "both are back", must(refresh(both, 2))(t), []string{mail, wiki})
	})
}

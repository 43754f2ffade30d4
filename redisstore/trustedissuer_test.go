package redisstore

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// trusting are settings of an issuer that the tenant may trust.
func (w tenant) trusting(issuer string) TrustedIssuerSettings {
	rules := []IssuerRule{{w.agent.ID, map[string]string{"sub": "repo:acme/*", "ref": "refs/heads/main"}}}
	return TrustedIssuerSettings{Issuer: issuer, JWKSURI: issuer + "/jwks", Rules: rules}
}

// trust makes the tenant trust an issuer.
func (w tenant) trust(t *testing.T, s *Store, issuer string) TrustedIssuer {
	t.Helper()
	return must(s.CreateTrustedIssuer(t.Context(), w.key, w.trusting(issuer), nil))(t)
}

func TestATrustedIssuerIsReadAsItWasCreatedAndChanged(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		first, second := w.trust(t, s, "https://one.example"), w.trust(t, s, "https://two.example")
		if got := must(s.TrustedIssuers(t.Context(), w.key))(t); !reflect.DeepEqual(got, []TrustedIssuer{first, second}) {
			t.Errorf("listed %+v, want %+v and %+v", got, first, second)
		}
		changed := must(s.ChangeTrustedIssuer(t.Context(), w.key, first.ID, func(settings *TrustedIssuerSettings) error {
			settings.JWKSURI, settings.JWKS, settings.Description = "", `{"keys":[]}`, "a \"line\"\nbreak"
			return nil
		}))(t)
		if got := must(s.TrustedIssuer(t.Context(), w.key, first.ID))(t); !reflect.DeepEqual(got, changed) || got.Settings.JWKS == "" {
			t.Errorf("read %+v, want %+v", got, changed)
		}
		if err := s.DeleteTrustedIssuer(t.Context(), w.key, first.ID); err != nil {
			t.Fatal(err)
		}
		wantError(t, "the second deletion", s.DeleteTrustedIssuer(t.Context(), w.key, first.ID), ErrUnknownIssuer)
		_, err := s.TrustedIssuer(t.Context(), w.key, first.ID)
		wantError(t, "a read of what was deleted", err, ErrUnknownIssuer)
		if got := must(s.TrustedIssuers(t.Context(), w.key))(t); !reflect.DeepEqual(got, []TrustedIssuer{second}) {
			t.Errorf("left over are %+v", got)
		}
		if again := w.trust(t, s, "https://one.example"); again.ID == first.ID {
			t.Error("what was deleted is back")
		}
	})
}

func TestAnOrganizationTrustsAnIssuerOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, other := newTenant(t, s, NewSession{MaxActions: 1}), newTenant(t, s, NewSession{MaxActions: 1})
		first := w.trust(t, s, "https://one.example")
		_, err := s.CreateTrustedIssuer(t.Context(), w.key, w.trusting("https://one.example"), nil)
		wantError(t, "the same again", err, ErrIssuerExists)
		w.trust(t, s, "https://one.example/") // another text is another issuer
		other.trust(t, s, "https://one.example")
		if err := s.DeleteTrustedIssuer(t.Context(), w.key, first.ID); err != nil {
			t.Fatal(err)
		}
		w.trust(t, s, "https://one.example")
	})
}

func TestAnOrganizationHas32TrustedIssuers(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		var last TrustedIssuer
		for i := range MostTrustedIssuers {
			last = w.trust(t, s, fmt.Sprintf("https://issuer.example/%d", i))
		}
		_, err := s.CreateTrustedIssuer(t.Context(), w.key, w.trusting("https://one.example"), nil)
		wantError(t, "one more", err, &QuotaError{Quota: "trusted_issuers", Used: MostTrustedIssuers, Max: MostTrustedIssuers})
		_, err = s.CreateTrustedIssuer(t.Context(), w.key, w.trusting(last.Settings.Issuer), nil)
		wantError(t, "one that exists", err, ErrIssuerExists)
		if err := s.DeleteTrustedIssuer(t.Context(), w.key, last.ID); err != nil {
			t.Fatal(err)
		}
		w.trust(t, s, "https://one.example")
	})
}

func TestARuleNamesAnAgentOfTheOrganization(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w, other := newTenant(t, s, NewSession{MaxActions: 1}), newTenant(t, s, NewSession{MaxActions: 1})
		unknown := NewRootID()
		settings := w.trusting("https://one.example")
		claims := settings.Rules[0].Claims
		for _, agent := range []uuid.UUID{other.agent.ID, unknown, other.agent.ID} {
			settings.Rules = append(settings.Rules, IssuerRule{agent, claims})
		}
		_, err := s.CreateTrustedIssuer(t.Context(), w.key, settings, nil)
		wantError(t, "rules of strangers", err, &UnknownAgentsError{[]uuid.UUID{other.agent.ID, unknown}})
		if got := must(s.TrustedIssuers(t.Context(), w.key))(t); len(got) != 0 {
			t.Errorf("stored are %+v", got)
		}
		trusted := w.trust(t, s, "https://one.example")
		_, err = s.ChangeTrustedIssuer(t.Context(), w.key, trusted.ID, func(into *TrustedIssuerSettings) error {
			into.Rules = settings.Rules
			return nil
		})
		wantError(t, "a change to rules of strangers", err, &UnknownAgentsError{[]uuid.UUID{other.agent.ID, unknown}})
		if got := must(s.TrustedIssuer(t.Context(), w.key, trusted.ID))(t); !reflect.DeepEqual(got, trusted) {
			t.Errorf("it became %+v", got)
		}
	})
}

func TestARuleOfAnAgentThatIsGoneHindersNoOtherChange(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		trusted := w.trust(t, s, "https://one.example")
		must(peek(t, s).Del(t.Context(), s.keys.Agent(w.agent.ID)).Result())(t)
		must(s.ChangeTrustedIssuer(t.Context(), w.key, trusted.ID, func(settings *TrustedIssuerSettings) error {
			settings.Description = "without its agent"
			return nil
		}))(t)
	})
}

func TestTwoChangesOfATrustedIssuerAtOnceBothCount(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		trusted, runs := w.trust(t, s, "https://one.example"), 0
		describe := func(settings *TrustedIssuerSettings) error { settings.Description = "inner"; return nil }
		got := must(s.ChangeTrustedIssuer(t.Context(), w.key, trusted.ID, func(settings *TrustedIssuerSettings) error {
			if runs++; runs == 1 {
				must(s.ChangeTrustedIssuer(t.Context(), w.key, trusted.ID, describe))(t)
			}
			settings.JWKSURI = "https://one.example/other"
			return nil
		}))(t)
		if runs != 2 || got.Settings.Description != "inner" || got.Settings.JWKSURI != "https://one.example/other" {
			t.Errorf("after %d runs %+v", runs, got.Settings)
		}
		own := errors.New("own")
		_, err := s.ChangeTrustedIssuer(t.Context(), w.key, trusted.ID, func(*TrustedIssuerSettings) error { return own })
		wantError(t, "a change that fails", err, own)
	})
}

func TestATrustedIssuerIsCreatedOnceForAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		colleague := w.newKey(t, s, Admin, 9)
		one := Idempotency{Key: "once", Fingerprint: [32]byte{1}}
		again, another := one, Idempotency{Key: "once", Fingerprint: [32]byte{2}}
		first := must(s.CreateTrustedIssuer(t.Context(), w.key, w.trusting("https://one.example"), &one))(t)
		second := must(s.CreateTrustedIssuer(t.Context(), colleague.key, w.trusting("https://one.example"), &again))(t)
		if second.ID != first.ID || one.Outcome.Replayed || !again.Outcome.Replayed {
			t.Errorf("created %s, then %s (%t)", first.ID, second.ID, again.Outcome.Replayed)
		}
		_, err := s.CreateTrustedIssuer(t.Context(), w.key, w.trusting("https://two.example"), &another)
		wantError(t, "another request", err, ErrIdempotencyKeyReused)
		if got := must(s.TrustedIssuers(t.Context(), w.key))(t); len(got) != 1 {
			t.Errorf("stored are %+v", got)
		}
	})
}

func TestADeletionRemovesTrustedIssuers(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, other := newTenant(t, s, NewSession{MaxActions: 1}), newTenant(t, s, NewSession{MaxActions: 1})
		w.trust(t, s, "https://one.example")
		kept := other.trust(t, s, "https://one.example")
		if err := asOperator(t, s).deleteOrganization(t.Context(), w.key.Organization, 0, func(DeletionProgress) {}); err != nil {
			t.Fatal(err)
		}
		for _, key := range s.issuerKeys(w.key.Organization) {
			if must(peek(t, s).Exists(t.Context(), key).Result())(t) != 0 {
				t.Errorf("%s is left", key)
			}
		}
		if got := must(s.TrustedIssuers(t.Context(), other.key))(t); !reflect.DeepEqual(got, []TrustedIssuer{kept}) {
			t.Errorf("the other organization's are %+v", got)
		}
	})
}

// What an organization's trusted issuers make Redis keep, with the longest settings, is less than what is promised for all.
func TestTrustedIssuersTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	const most = 2 << 20 // bytes; docs/operations.md
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		for i := range MostTrustedIssuers {
			settings := TrustedIssuerSettings{
				Issuer: fmt.Sprintf("https://%d.example/", i) + strings.Repeat("x", 230), JWKS: strings.Repeat("x", 16<<10),
				Description: strings.Repeat("\U0001F600", 500), Rules: longestRules(t, w.agent.ID),
			}
			must(s.CreateTrustedIssuer(t.Context(), w.key, settings, nil))(t)
		}
		taken := int64(0)
		for _, key := range s.issuerKeys(w.key.Organization)[1:] {
			taken += must(peek(t, s).MemoryUsage(t.Context(), key, 0).Result())(t)
		}
		if taken > most {
			t.Errorf("%d bytes; at most %d are promised", taken, most)
		}
	})
}

// longestRules are rules as long as the API takes them.
func longestRules(t *testing.T, agent uuid.UUID) []IssuerRule {
	t.Helper()
	var rules []IssuerRule
	for {
		rules = append(rules, IssuerRule{agent, map[string]string{"sub": strings.Repeat("s", 400)}})
		if text := must(RulesText(rules))(t); len(text) > MostIssuerRules {
			return slices.Delete(rules, len(rules)-1, len(rules))
		}
	}
}

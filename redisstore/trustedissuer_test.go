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
	onTenantWithCluster(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		first, second := w.trust(t, s, "https://one.example"), w.trust(t, s, "https://two.example")
		wantEqual(t, "the list", must(s.TrustedIssuers(t.Context(), w.key))(t), []TrustedIssuer{first, second})
		changed := must(s.ChangeTrustedIssuer(t.Context(), w.key, first.ID, func(settings *TrustedIssuerSettings) error {
			settings.JWKSURI, settings.JWKS, settings.Description = "", `{"keys":[]}`, "a \"line\"\nbreak"
			return nil
		}))(t)
		if got := must(s.TrustedIssuer(t.Context(), w.key, first.ID))(t); !reflect.DeepEqual(got, changed) || got.Settings.JWKS == "" {
			t.Errorf("read %+v, want %+v", got, changed)
		}
		mustDo(t, s.DeleteTrustedIssuer(t.Context(), w.key, first.ID))
		wantError(t, "the second deletion", s.DeleteTrustedIssuer(t.Context(), w.key, first.ID), ErrUnknownIssuer)
		wantError(t, "a read of what was deleted", errOf(s.TrustedIssuer(t.Context(), w.key, first.ID)), ErrUnknownIssuer)
		wantEqual(t, "what is left over", must(s.TrustedIssuers(t.Context(), w.key))(t), []TrustedIssuer{second})
		if again := w.trust(t, s, "https://one.example"); again.ID == first.ID {
			t.Error("what was deleted is back")
		}
	})
}

func TestAnOrganizationTrustsAnIssuerOnceAnd32OfThem(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		const one = "https://one.example"
		create := func(issuer string) error {
			return errOf(s.CreateTrustedIssuer(t.Context(), w.key, w.trusting(issuer), nil))
		}
		first := w.trust(t, s, one)
		w.trust(t, s, one+"/") // another text is another issuer
		newTenant(t, s, roomy).trust(t, s, one)
		wantError(t, "the same again", create(one), ErrIssuerExists)
		for i := range MostTrustedIssuers - 2 {
			w.trust(t, s, fmt.Sprintf("https://issuer.example/%d", i))
		}
		full := &QuotaError{Quota: "trusted_issuers", Used: MostTrustedIssuers, Max: MostTrustedIssuers}
		wantError(t, "one more", create("https://more.example"), full)
		wantError(t, "one that exists", create(one), ErrIssuerExists)
		mustDo(t, s.DeleteTrustedIssuer(t.Context(), w.key, first.ID))
		wantError(t, "after a deletion", create(one), nil)
	})
}

func TestARuleNamesAnAgentOfTheOrganization(t *testing.T) {
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w, stranger, unknown := newTenant(t, s, roomy), newTenant(t, s, roomy).agent.ID, NewRootID()
		trusted, settings := w.trust(t, s, "https://one.example"), w.trusting("https://two.example")
		for _, agent := range []uuid.UUID{stranger, unknown, stranger} {
			settings.Rules = append(settings.Rules, IssuerRule{agent, settings.Rules[0].Claims})
		}
		defer w.unchanged(t, s)()
		want := &UnknownAgentsError{[]uuid.UUID{stranger, unknown}}
		wantError(t, "rules of strangers", errOf(s.CreateTrustedIssuer(t.Context(), w.key, settings, nil)), want)
		change := func(into *TrustedIssuerSettings) error { into.Rules = settings.Rules; return nil }
		wantError(t, "a change to them", errOf(s.ChangeTrustedIssuer(t.Context(), w.key, trusted.ID, change)), want)
	})
}

func TestARuleOfAnAgentThatIsGoneHindersNoOtherChange(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		trusted := w.trust(t, s, "https://one.example")
		must(peek(t, s).Del(t.Context(), s.keys.Agent(w.agent.ID)).Result())(t)
		describe := func(settings *TrustedIssuerSettings) error { settings.Description = "without its agent"; return nil }
		must(s.ChangeTrustedIssuer(t.Context(), w.key, trusted.ID, describe))(t)
	})
}

func TestTwoChangesOfATrustedIssuerAtOnceBothCount(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
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
		fail := func(*TrustedIssuerSettings) error { return own }
		wantError(t, "a change that fails", errOf(s.ChangeTrustedIssuer(t.Context(), w.key, trusted.ID, fail)), own)
	})
}

func TestATrustedIssuerIsCreatedOnceForAnIdempotencyKey(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
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
		wantEqual(t, "how many are stored", len(must(s.TrustedIssuers(t.Context(), w.key))(t)), 1)
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

package redisstore

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// A forged key costs nothing to make, and may name any organization: none is counted, remembered or asked for in Redis
// before the key has been good. Knowing an organization's id without a credential uses none of its rate or quota.
func TestForgedKeysAndSecretsUseUpNoRateAndNoQuota(t *testing.T) {
	onTenantOf(t, Config{Rates: Rates{Organization: 1, Agent: 1}}, NewSession{MaxActions: 5}, func(t *testing.T, s *Store, w tenant) {
		before := s.core.Usage.Accounts.Len()
		for i := range 3 * kernel.BurstTime {
			forged := APIKey{Organization: uuid.New(), Hash: [32]byte{9}}
			if i%2 == 0 {
				forged.Organization = w.key.Organization
			}
			wantError(t, "an agent", errOf(s.CreateAgent(t.Context(), forged, Agent{Name: "scout"}, [32]byte{3}, nil)), ErrInvalidAPIKey)
			_, err := s.CreateSession(t.Context(), forged, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour,
				Idempotency: &Idempotency{Key: uuid.NewString()}})
			wantError(t, "a session", err, ErrInvalidAPIKey)
			_, err = s.RotateAPIKey(t.Context(), forged, APIKey{Hash: [32]byte{4}}, 0, &Idempotency{Key: uuid.NewString(), Seal: plainSeal("s")})
			wantError(t, "a rotation", err, ErrInvalidAPIKey)
			wantError(t, "an exchange", errOf(s.ExchangeSecret(t.Context(), w.agent.ID, [32]byte{8}, GrantRequest{})), ErrInvalidCredentials)
		}
		wantEqual(t, "how many accounts there are", s.core.Usage.Accounts.Len(), before)
		if usage := usageOf(t, s, w.key.Organization); usage["agents"] != 1 || usage["open_sessions"] != 1 || usage["idempotency_keys"] != 0 {
			t.Errorf("the organization that they named holds %v", usage)
		}
		w.exchange(t, s)
		must(s.CreateAgent(t.Context(), w.key, Agent{Name: "n"}, [32]byte{3}, nil))(t)
		if used := usageOf(t, s, w.key.Organization); used["agents"] != 2 || used["refresh_families"] != 1 {
			t.Errorf("it holds %v", used)
		}
	})
}

// What an organization holds is its own business: a wrong secret is refused as wrong, also where a good one
// would be refused by a quota.
func TestAWrongSecretLearnsNothingOfAQuota(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		w.exchange(t, s)
		w.setQuotas(t, s, map[string]int64{"refresh_families": 1})
		wantOverQuota(t, errOf(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{})), "refresh_families", 1, 1)
		wantError(t, "a wrong secret", errOf(s.ExchangeSecret(t.Context(), w.agent.ID, [32]byte{9}, GrantRequest{})), ErrInvalidCredentials)
	})
}

// A new instance knows no key yet. What the first use of a valid one creates counts.
func TestTheFirstUseOfAKeyAtAnInstanceIsCounted(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 5}, func(t *testing.T, s *Store, w tenant) {
		before := usageOf(t, s, w.key.Organization)
		s.core.Proven = kernel.NewProvenKeys()
		must(s.CreateAgent(t.Context(), w.key, Agent{Name: "scout"}, [32]byte{3}, nil))(t)
		usage := usageOf(t, s, w.key.Organization)
		if usage["agents"] != before["agents"]+1 || usage["bytes"] <= before["bytes"] {
			t.Errorf("%v, before %v", usage, before)
		}
		s.core.Proven = kernel.NewProvenKeys()
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Idempotency: &Idempotency{Key: uuid.NewString()}}))(t)
		wantEqual(t, "the keys counted", usageOf(t, s, w.key.Organization)["idempotency_keys"], before["idempotency_keys"]+1)
	})
}

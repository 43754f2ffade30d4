package redisstore

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// A forged key costs nothing to make, and may name any organization: none is counted, remembered or asked for in Redis
// before the key has been good.
func TestForgedKeysAreCountedForNoOrganization(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 5}, func(t *testing.T, s *Store, w tenant) {
		before := s.core.Usage.Accounts.Len()
		for i := range 20 {
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
		}
		if got := s.core.Usage.Accounts.Len(); got != before {
			t.Errorf("%d accounts, %d before", got, before)
		}
		if usage := usageOf(t, s, w.key.Organization); usage["agents"] != 1 || usage["open_sessions"] != 1 || usage["idempotency_keys"] != 0 {
			t.Errorf("the organization that they named holds %v", usage)
		}
	})
}

// A new instance knows no key yet. What the first use of a valid one creates counts.
func TestTheFirstUseOfAKeyAtAnInstanceIsCounted(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 5}, func(t *testing.T, s *Store, w tenant) {
		before := usageOf(t, s, w.key.Organization)
		s.core.Proven = kernel.NewProvenKeys()
		if _, err := s.CreateAgent(t.Context(), w.key, Agent{Name: "scout"}, [32]byte{3}, nil); err != nil {
			t.Fatal(err)
		}
		usage := usageOf(t, s, w.key.Organization)
		if usage["agents"] != before["agents"]+1 || usage["bytes"] <= before["bytes"] {
			t.Errorf("%v, before %v", usage, before)
		}
		s.core.Proven = kernel.NewProvenKeys()
		if _, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Idempotency: &Idempotency{Key: uuid.NewString()}}); err != nil {
			t.Fatal(err)
		}
		if again := usageOf(t, s, w.key.Organization); again["idempotency_keys"] != before["idempotency_keys"]+1 {
			t.Errorf("%v, before %v", again, before)
		}
	})
}

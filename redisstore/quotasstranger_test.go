package redisstore

import "testing"

// What an organization holds is its own business: a wrong secret is refused as wrong, also where a good one
// would be refused by a quota.
func TestAWrongSecretLearnsNothingOfAQuota(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		w.exchange(t, s)
		must(0, s.SetQuotas(t.Context(), w.key.Organization, map[string]int64{"refresh_families": 1}))(t)
		usageOf(t, s, w.key.Organization)
		_, err := s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{})
		wantOverQuota(t, err, "refresh_families", 1, 1)
		wantError(t, "a wrong secret", errOf(s.ExchangeSecret(t.Context(), w.agent.ID, [32]byte{9}, GrantRequest{})), ErrInvalidCredentials)
	})
}

package redisstore

import (
	"testing"
	"time"
)

func TestCheckingAKeyIsNoUseOfIt(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		k := w.newKey(t, s, Operator, 20)
		defer w.unchanged(t, s)()
		for _, needs := range []Role{Viewer, Operator} {
			wantError(t, string(needs), s.CheckKey(t.Context(), k.needing(needs)), nil)
		}
		wantError(t, "admin", s.CheckKey(t.Context(), k.needing(Admin)), &RoleError{Required: Admin})
	})
}

func TestAKeyLearnsWhichItIsAndThatItWasReplaced(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		name := must(s.Organization(t.Context(), w.key))(t).Name
		key := func(first byte) APIKey {
			return APIKey{Organization: w.key.Organization, Hash: [32]byte{first}, Needs: Viewer}
		}
		other, viewer := w.newKey(t, s, Operator, 20), w.newKey(t, s, Viewer, 30)
		must(s.RotateAPIKeyOf(t.Context(), w.key, other.id, key(21), time.Hour, nil))(t)
		must(s.RotateAPIKey(t.Context(), w.key, key(22), time.Hour, nil))(t)
		for presented, want := range map[APIKey]OwnKey{
			key(30): {name, viewer.id, Viewer, false},
			key(20): {name, other.id, Operator, true}, key(21): {name, other.id, Operator, false},
			key(1): {name, w.key.Organization, Admin, true}, key(22): {name, w.key.Organization, Admin, false},
		} {
			wantEqual(t, "a key, one that was rotated, or its successor", must(s.OwnKey(t.Context(), presented))(t), want)
		}
	})
}

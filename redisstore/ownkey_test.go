package redisstore

import (
	"testing"
	"time"
)

func TestAKeyLearnsWhichItIs(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		name := must(s.Organization(t.Context(), w.key))(t).Name
		first := w.key
		first.Needs = Viewer
		wantEqual(t, "the first key", must(s.OwnKey(t.Context(), first))(t), OwnKey{name, first.Organization, Admin, false})
		for i, role := range []Role{Viewer, Operator, Admin} {
			k := w.newKey(t, s, role, byte(20+i))
			wantEqual(t, "a key of "+string(role), must(s.OwnKey(t.Context(), k.needing(Viewer)))(t), OwnKey{name, k.id, role, false})
		}
	})
}

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

func TestAKeyLearnsThatItWasReplaced(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		name := must(s.Organization(t.Context(), w.key))(t).Name
		key := func(first byte) APIKey {
			return APIKey{Organization: w.key.Organization, Hash: [32]byte{first}, Needs: Viewer}
		}
		other := w.newKey(t, s, Operator, 20)
		must(s.RotateAPIKeyOf(t.Context(), w.key, other.id, key(21), time.Hour, nil))(t)
		must(s.RotateAPIKey(t.Context(), w.key, key(22), time.Hour, nil))(t)
		for presented, want := range map[APIKey]OwnKey{
			key(20): {name, other.id, Operator, true}, key(21): {name, other.id, Operator, false},
			key(1): {name, w.key.Organization, Admin, true}, key(22): {name, w.key.Organization, Admin, false},
		} {
			wantEqual(t, "a key that was rotated, or its successor", must(s.OwnKey(t.Context(), presented))(t), want)
		}
	})
}

package redisstore

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

func TestAKeyLearnsWhichItIs(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		name := must(s.Organization(t.Context(), w.key))(t).Name
		first := w.key
		first.Needs = Viewer
		if got := must(s.OwnKey(t.Context(), first))(t); got != (OwnKey{name, first.Organization, Admin, false}) {
			t.Errorf("the first key is %+v", got)
		}
		for i, role := range []Role{Viewer, Operator, Admin} {
			k := w.newKey(t, s, role, byte(20+i))
			if got := must(s.OwnKey(t.Context(), k.needing(Viewer)))(t); got != (OwnKey{name, k.id, role, false}) {
				t.Errorf("a key of %s is %+v", role, got)
			}
		}
	})
}

func TestCheckingAKeyIsNoUseOfIt(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		k := w.newKey(t, s, Operator, 20)
		before := w.contents(t, s)
		for _, needs := range []Role{Viewer, Operator} {
			wantError(t, string(needs), s.CheckKey(t.Context(), k.needing(needs)), nil)
		}
		wantError(t, "admin", s.CheckKey(t.Context(), k.needing(Admin)), &RoleError{Required: Admin})
		unknown := APIKey{Organization: w.key.Organization, Hash: [32]byte{99}, Needs: Viewer}
		wantError(t, "unknown", s.CheckKey(t.Context(), unknown), ErrInvalidAPIKey)
		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
}

func TestAKeyLearnsThatItWasReplaced(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		k := w.newKey(t, s, Operator, 20)
		fresh := APIKey{Organization: w.key.Organization, Hash: [32]byte{21}, Hint: "hint", Needs: Viewer}
		must(s.RotateAPIKeyOf(t.Context(), w.key, k.id, fresh, time.Hour, nil))(t)
		for key, want := range map[APIKey]bool{k.needing(Viewer): true, fresh: false} {
			if got := must(s.OwnKey(t.Context(), key))(t); got.Replaced != want || got.ID != k.id || got.Role != Operator {
				t.Errorf("%+v, want replaced %t", got, want)
			}
		}
		next := APIKey{Organization: w.key.Organization, Hash: [32]byte{22}, Hint: "hint", Needs: Viewer}
		must(s.RotateAPIKey(t.Context(), w.key, next, time.Hour, nil))(t)
		first := w.key
		first.Needs = Viewer
		for key, want := range map[APIKey]bool{first: true, next: false} {
			if got := must(s.OwnKey(t.Context(), key))(t); got.Replaced != want || got.ID != first.Organization {
				t.Errorf("the first key: %+v, want replaced %t", got, want)
			}
		}
		unknown := APIKey{Organization: w.key.Organization, Hash: [32]byte{99}, Needs: Viewer}
		if _, err := s.OwnKey(t.Context(), unknown); !errors.Is(err, ErrInvalidAPIKey) {
			t.Errorf("an unknown key: %v", err)
		}
	})
}

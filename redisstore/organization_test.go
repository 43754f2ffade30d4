package redisstore

import (
	"reflect"
	"testing"
	"time"
)

func TestAnOrganizationIsOpenedByItsKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for _, metadata := range []string{"", `{"plan":"größer"}`} {
			key := APIKey{Organization: NewRootID(), Hash: [32]byte{0, 1, 0xff, '\n'}}
			before := time.Now().Add(-time.Millisecond)
			created := must(s.CreateOrganization(t.Context(), "", key, "Acme & Söhne", metadata, nil))(t)
			if created.Created.Before(before) || created.Created.After(time.Now()) {
				t.Errorf("created at %s", created.Created)
			}
			want := Organization{ID: key.Organization, Name: "Acme & Söhne", Metadata: metadata, Created: created.Created}
			if created != want {
				t.Errorf("created %+v, want %+v", created, want)
			}
			if read := must(s.Organization(t.Context(), key))(t); read != want {
				t.Errorf("read %+v, want %+v", read, want)
			}
		}
	})
}

func TestAnotherKeyDoesNotReadAnOrganization(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		key := newOrganization(t, s)
		oneBitOff := key
		oneBitOff.Hash[31] ^= 1
		for name, wrong := range map[string]APIKey{
			"one bit off":          oneBitOff,
			"zero":                 {Organization: key.Organization},
			"unknown organization": {Organization: NewID(key.Organization), Hash: key.Hash},
		} {
			_, err := s.Organization(t.Context(), wrong)
			wantError(t, name, err, ErrInvalidAPIKey)
		}
	})
}

func TestARotatedKeyEndsAtOnceWithoutGrace(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		old := newOrganization(t, s)
		fresh := rotated(t, s, old, 2, 0)
		_, err := s.Organization(t.Context(), old)
		wantError(t, "the old key", err, ErrInvalidAPIKey)
		must(s.Organization(t.Context(), fresh))(t)
	})
}

func TestARotatedKeyLivesForItsGrace(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		old := newOrganization(t, s)
		before := time.Now().Add(-time.Millisecond)
		fresh := old
		fresh.Hash[0] = 2
		until := must(s.RotateAPIKey(t.Context(), old, APIKey{Hash: fresh.Hash}, time.Minute, nil))(t)
		if until.Before(before.Add(time.Minute)) || until.After(time.Now().Add(time.Minute)) {
			t.Errorf("the old key ends at %s, a minute after %s", until, before)
		}
		for _, key := range []APIKey{old, fresh} {
			must(s.Organization(t.Context(), key))(t)
			must(s.CreateAgent(t.Context(), key, Agent{Name: "scout"}, [32]byte{}, nil))(t)
			must(s.Agents(t.Context(), key, Query{Limit: 1}))(t)
		}
	})
}

func TestARotatedKeyDiesAfterItsGrace(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		old := newOrganization(t, s)
		fresh := rotated(t, s, old, 2, 30*time.Millisecond)
		eventually(t, "the old key is dead", func() bool {
			_, err := s.Organization(t.Context(), old)
			return err != nil
		})
		_, err := s.Organization(t.Context(), old)
		wantError(t, "the old key", err, ErrInvalidAPIKey)
		_, err = s.CreateAgent(t.Context(), old, Agent{Name: "scout"}, [32]byte{}, nil)
		wantError(t, "an agent by the old key", err, ErrInvalidAPIKey)
		must(s.Organization(t.Context(), fresh))(t)
	})
}

// If the reply to a rotation is lost, the client still uses the presented key and no client knows the new one.
func TestARepeatedRotationReplacesTheLostKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		old := newOrganization(t, s)
		lost := rotated(t, s, old, 2, time.Minute)
		fresh := rotated(t, s, old, 3, time.Minute)
		_, err := s.Organization(t.Context(), lost)
		wantError(t, "the lost key", err, ErrInvalidAPIKey)
		must(s.Organization(t.Context(), old))(t)
		must(s.Organization(t.Context(), fresh))(t)
	})
}

func TestOnlyTheLastTwoKeysEverLive(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		first := newOrganization(t, s)
		second := rotated(t, s, first, 2, time.Minute)
		third := rotated(t, s, second, 3, time.Minute)
		_, err := s.Organization(t.Context(), first)
		wantError(t, "the key before the last", err, ErrInvalidAPIKey)
		must(s.Organization(t.Context(), second))(t)
		must(s.Organization(t.Context(), third))(t)
	})
}

func TestADeadKeyRotatesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		dead := newOrganization(t, s)
		rotated(t, s, dead, 2, 0)
		key := s.keys.Organization(dead.Organization)
		before := contents(t, s, key)
		_, err := s.RotateAPIKey(t.Context(), dead, APIKey{Hash: [32]byte{3}}, time.Minute, nil)
		wantError(t, "rotation by the dead key", err, ErrInvalidAPIKey)
		if after := contents(t, s, key); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
}

func TestRotationOfAnUnknownOrganizationMakesNone(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		key := APIKey{Organization: NewRootID()}
		_, err := s.RotateAPIKey(t.Context(), key, APIKey{Hash: [32]byte{3}}, time.Minute, nil)
		wantError(t, "rotation", err, ErrInvalidAPIKey)
		if n := must(peek(t, s).Exists(t.Context(), s.keys.Organization(key.Organization)).Result())(t); n != 0 {
			t.Error("it exists now")
		}
	})
}

// rotated rotates the organization's key, and returns the new one.
func rotated(t *testing.T, s *Store, key APIKey, first byte, grace time.Duration) APIKey {
	t.Helper()
	fresh := APIKey{Organization: key.Organization, Hash: [32]byte{first}}
	must(s.RotateAPIKey(t.Context(), key, APIKey{Hash: fresh.Hash}, grace, nil))(t)
	return fresh
}

func TestAKeyInItsGraceTimeCannotProlongIt(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		key := newOrganization(t, s)
		until := must(s.RotateAPIKey(t.Context(), key, APIKey{Hash: [32]byte{2}}, time.Minute, nil))(t)
		if again := must(s.RotateAPIKey(t.Context(), key, APIKey{Hash: [32]byte{3}}, time.Hour, nil))(t); !again.Equal(until) {
			t.Errorf("asked again it ends at %s, at first at %s", again, until)
		}
	})
}

// A stolen key in its grace time must not take the organization over.
func TestAKeyInItsGraceTimeCannotRotateOnceItsSuccessorIsUsed(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for name, use := range map[string]func(APIKey) error{
			"a read": func(key APIKey) error { _, err := s.Organization(t.Context(), key); return err },
			"a list": func(key APIKey) error { _, err := s.Agents(t.Context(), key, Query{Limit: 1}); return err },
			"an agent": func(key APIKey) error {
				_, err := s.CreateAgent(t.Context(), key, Agent{Name: "scout"}, [32]byte{}, nil)
				return err
			},
		} {
			old := newOrganization(t, s)
			must(s.Organization(t.Context(), old))(t)
			rotated(t, s, old, 2, time.Minute)
			must(s.Organization(t.Context(), old))(t) // which is no use of its successor
			fresh := rotated(t, s, old, 3, time.Minute)
			wantError(t, name, use(fresh), nil)

			elsewhere := must(Open(s.config))(t) // what one instance was asked counts for all
			for _, at := range []*Store{s, elsewhere} {
				before := contents(t, s, s.keys.Organization(old.Organization))
				_, err := at.RotateAPIKey(t.Context(), old, APIKey{Hash: [32]byte{4}}, time.Minute, nil)
				wantError(t, "rotation by the key in grace, after "+name, err, ErrSuccessorUsed)
				if after := contents(t, s, s.keys.Organization(old.Organization)); !reflect.DeepEqual(after, before) {
					t.Errorf("%q became %q", before, after)
				}
			}
			_ = elsewhere.Close()
			must(s.Organization(t.Context(), old))(t)

			last := rotated(t, s, fresh, 5, time.Minute)
			fresher := rotated(t, s, fresh, 6, time.Minute) // its successor is unused
			_, err := s.Organization(t.Context(), last)
			wantError(t, "the lost key", err, ErrInvalidAPIKey)
			must(s.Organization(t.Context(), fresher))(t)
		}
	})
}

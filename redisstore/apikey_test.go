package redisstore

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// otherKey is an API key beside an organization's first one.
type otherKey struct {
	id  uuid.UUID
	key APIKey
}

// newKey creates an API key of the tenant with this role, whose hash begins with this byte.
func (w tenant) newKey(t *testing.T, s *Store, role Role, first byte) otherKey {
	t.Helper()
	fresh := APIKey{Organization: w.key.Organization, Hash: [32]byte{first}, Hint: "hint"}
	return otherKey{must(s.CreateAPIKey(t.Context(), w.key, fresh, NewAPIKey{Name: "n", Role: role}))(t).ID, fresh}
}

// needing returns the key as an operation presents it that needs this role.
func (k otherKey) needing(role Role) APIKey {
	k.key.Needs = role
	return k.key
}

func TestAKeyDoesWhatItsRoleAllows(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		order := []Role{Viewer, Operator, Admin}
		for held, role := range order {
			key := w.newKey(t, s, role, byte(10+held))
			for needed, need := range append(order, "") {
				want := error(nil)
				if min(needed, 2) > held { // "" is Admin
					want = &RoleError{}
				}
				_, err := s.Organization(t.Context(), key.needing(need))
				if (want == nil) != (err == nil) || want != nil && !kernel.IsRoleError(err) {
					t.Errorf("a key of %s where %s is needed: %v", role, need, err)
				}
			}
		}
	})
}

func TestAKeyWorksUntilItsEnd(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		key := APIKey{Organization: w.key.Organization, Hash: [32]byte{10}, Hint: "hint", Needs: Viewer}
		must(s.CreateAPIKey(t.Context(), w.key, key, NewAPIKey{Name: "n", Role: Viewer, Lifetime: time.Minute}))(t)
		step(59 * time.Second)
		must(s.Organization(t.Context(), key))(t)
		step(61 * time.Second)
		_, err := s.Organization(t.Context(), key)
		wantError(t, "a key whose time is over", err, ErrInvalidAPIKey)
	})
}

func TestAKeyWithoutTheRoleChangesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, roomy)
		of, viewer := w.furnished(t, s), w.newKey(t, s, Viewer, 10)
		must(s.Organization(t.Context(), viewer.needing(Viewer)))(t)
		before := w.contentsOf(t, s, of)
		for _, operation := range askedByKey(viewer.needing(Operator)) {
			if err := operation.ask(s, t, of); !kernel.IsRoleError(err) {
				t.Errorf("%s: %v", operation.name, err)
			}
		}
		if after := w.contentsOf(t, s, of); !reflect.DeepEqual(after, before) {
			t.Errorf("%v became %v", before, after)
		}
	})
}

func TestTheOperatorsNewKeyEndsEveryOther(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for _, grace := range []time.Duration{0, time.Hour} {
			w := newTenant(t, s, NewSession{MaxActions: 9})
			keys := []otherKey{w.newKey(t, s, Viewer, 10), w.newKey(t, s, Admin, 11)}
			fresh := APIKey{Organization: w.key.Organization, Hash: [32]byte{20}}
			until := must(asOperator(t, s).ReplaceAPIKey(t.Context(), fresh, grace))(t)
			must(asOperator(t, s).ReplaceAPIKey(t.Context(), fresh, grace))(t)
			must(s.Organization(t.Context(), fresh))(t)
			want := error(nil)
			if grace == 0 {
				want = ErrInvalidAPIKey
			}
			for _, key := range keys {
				_, err := s.Organization(t.Context(), key.needing(Viewer))
				wantError(t, "another key", err, want)
			}
			listed := must(s.APIKeys(t.Context(), fresh))(t)
			if grace == 0 && len(listed) != 1 {
				t.Errorf("%d keys are listed, want the new one", len(listed))
			}
			for _, k := range listed {
				if k.ID != w.key.Organization && !k.Expires.Equal(until) {
					t.Errorf("%s ends at %s, want %s", k.ID, k.Expires, until)
				}
			}
		}
	})
}

func TestAnOrganizationThatIsBeingDeletedHasNoKeys(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		key := w.newKey(t, s, Admin, 10)
		if err := asOperator(t, s).removeAPIKeys(t.Context(), w.key.Organization); err != nil {
			t.Fatal(err)
		}
		for _, dead := range []APIKey{w.key, key.key} {
			_, err := s.Organization(t.Context(), dead)
			wantError(t, "a key", err, ErrInvalidAPIKey)
		}
	})
}

// 64 keys of an organization at work on one instance have its share of Redis, not that of forged keys.
func TestEveryKeyOfAnOrganizationHasItsFlow(t *testing.T) {
	t.Parallel()
	p, organization := kernel.NewProvenKeys(), uuid.New()
	key := func(i int) APIKey { return APIKey{Organization: organization, Hash: [32]byte{byte(i), 1}} }
	for i := range kernel.MaxProvenOf {
		p.Note(key(i), nil)
	}
	for i := range kernel.MaxProvenOf {
		if got := p.Flow(key(i)); got != (flow{Owner: organization}) {
			t.Errorf("key %d has the flow %v", i, got)
		}
	}
	p.Note(key(3), ErrInvalidAPIKey)
	if p.Flow(key(3)) != kernel.UnprovenFlow || p.Flow(key(4)) == kernel.UnprovenFlow {
		t.Error("a refusal of one key is not taken for that key alone")
	}
	p.Note(key(200), &RoleError{Required: Viewer})
	if p.Flow(key(200)) == kernel.UnprovenFlow {
		t.Error("a key that may not do something counts as forged")
	}
}

func TestTheUseOfAKeyIsNotedAtFirstAndThenOnceAMinute(t *testing.T) {
	t.Parallel()
	p, key, start := kernel.NewProvenKeys(), APIKey{Organization: uuid.New(), Hash: [32]byte{1}}, time.Unix(1_800_000_000, 0)
	for range 2 {
		if !p.MayNoteUse(key, start) {
			t.Error("the first use is not noted until it was")
		}
	}
	p.Noted(key, start)
	var noted []bool
	for _, later := range []time.Duration{0, 59 * time.Second, time.Minute, 61 * time.Second, 3 * time.Minute} {
		noted = append(noted, p.MayNoteUse(key, start.Add(later)))
	}
	if want := []bool{false, false, true, false, true}; !slices.Equal(noted, want) {
		t.Errorf("noted %v, want %v", noted, want)
	}
}

// An admin's key that does nothing but rotate keys is in use too.
func TestARotationIsAUseOfTheKeyThatCalls(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		admin, viewer := w.newKey(t, s, Admin, 10), w.newKey(t, s, Viewer, 11)
		must(s.RotateAPIKeyOf(t.Context(), admin.key, viewer.id, APIKey{Hash: [32]byte{12}}, 0, nil))(t)
		must(s.RotateAPIKey(t.Context(), admin.key, APIKey{Hash: [32]byte{13}}, 0, nil))(t)
		for _, k := range must(s.APIKeys(t.Context(), w.key))(t) {
			if used := !k.LastUsed.IsZero(); used != (k.ID != viewer.id) {
				t.Errorf("the key of %s has the last use %v", k.Role, k.LastUsed)
			}
		}
	})
}

func TestTwoAdminsCannotDeleteEachOthersKeysAtOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		other := w.newKey(t, s, Admin, 10)
		results := make(chan error, 2)
		go func() { results <- s.DeleteAPIKey(t.Context(), w.key, other.id) }()
		go func() { results <- s.DeleteAPIKey(t.Context(), other.key, w.key.Organization) }()
		failed := 0
		for range 2 {
			if err := <-results; err != nil {
				failed++
				if err != ErrLastAdminKey && err != ErrInvalidAPIKey {
					t.Errorf("refused by %v", err)
				}
			}
		}
		if failed != 1 {
			t.Errorf("%d of both were refused, want one", failed)
		}
	})
}

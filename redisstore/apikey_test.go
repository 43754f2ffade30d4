package redisstore

import (
	"fmt"
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
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		order := []Role{Viewer, Operator, Admin}
		for held, role := range order {
			key := w.newKey(t, s, role, byte(10+held))
			for needed, need := range append(order, "") {
				refused := min(needed, 2) > held // "" is Admin
				if err := errOf(s.Organization(t.Context(), key.needing(need))); kernel.IsRoleError(err) != refused || err != nil && !refused {
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
		wantError(t, "a key whose time is over", errOf(s.Organization(t.Context(), key)), ErrInvalidAPIKey)
	})
}

func TestAKeyWithoutTheRoleChangesNothing(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		of, viewer := w.furnished(t, s), w.newKey(t, s, Viewer, 10)
		must(s.Organization(t.Context(), viewer.needing(Viewer)))(t)
		defer w.unchangedOf(t, s, of)()
		for _, operation := range askedByKey(viewer.needing(Operator)) {
			if err := operation.ask(s, t, of); !kernel.IsRoleError(err) {
				t.Errorf("%s: %v", operation.name, err)
			}
		}
	})
}

func TestTheOperatorsNewKeyEndsEveryOther(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for grace, want := range map[time.Duration]error{0: ErrInvalidAPIKey, time.Hour: nil} {
			w := newTenant(t, s, NewSession{MaxActions: 9})
			keys := []APIKey{w.newKey(t, s, Viewer, 10).needing(Viewer), w.newKey(t, s, Admin, 11).key, {Organization: w.key.Organization, Hash: [32]byte{12}}}
			must(s.RotateAPIKey(t.Context(), w.key, keys[2], time.Hour, nil))(t)
			fresh := APIKey{Organization: w.key.Organization, Hash: [32]byte{20}}
			until := must(asOperator(t, s).ReplaceAPIKey(t.Context(), fresh, grace))(t)
			if again := must(asOperator(t, s).ReplaceAPIKey(t.Context(), fresh, grace))(t); grace > 0 && !again.Equal(until) {
				t.Errorf("sent again, the keys before end at %s, not %s", again, until)
			}
			must(s.Organization(t.Context(), fresh))(t)
			for _, key := range keys {
				wantError(t, "another key", errOf(s.Organization(t.Context(), key)), want)
			}
			wantError(t, "the one before the current", errOf(s.Organization(t.Context(), w.key)), ErrInvalidAPIKey)
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

// 64 keys of an organization at work on one instance have its share of Redis, not that of forged keys.
func TestEveryKeyOfAnOrganizationHasItsFlow(t *testing.T) {
	t.Parallel()
	p, organization := kernel.NewProvenKeys(), uuid.New()
	key := func(i int) APIKey { return APIKey{Organization: organization, Hash: [32]byte{byte(i), 1}} }
	for i := range kernel.MaxProvenOf {
		p.Note(key(i), nil)
	}
	for i := range kernel.MaxProvenOf {
		wantEqual(t, fmt.Sprintf("the flow of key %d", i), p.Flow(key(i)), flow{Owner: organization})
	}
	p.Note(key(3), ErrInvalidAPIKey)
	wantEqual(t, "the flow of a key that was refused", p.Flow(key(3)), kernel.UnprovenFlow)
	wantEqual(t, "the flow of another", p.Flow(key(4)), flow{Owner: organization})
	p.Note(key(200), &RoleError{Required: Viewer}) // it is no forged one
	wantEqual(t, "the flow of a key that may not do something", p.Flow(key(200)), flow{Owner: organization})
}

func TestTheUseOfAKeyIsNotedAtFirstAndThenOnceAMinute(t *testing.T) {
	t.Parallel()
	p, key, start := kernel.NewProvenKeys(), APIKey{Organization: uuid.New(), Hash: [32]byte{1}}, time.Unix(1_800_000_000, 0)
	for range 2 {
		wantEqual(t, "the first use may be noted until it was", p.MayNoteUse(key, start), true)
	}
	p.Noted(key, start)
	var noted []bool
	for _, later := range []time.Duration{0, 59 * time.Second, time.Minute, 61 * time.Second, 3 * time.Minute} {
		noted = append(noted, p.MayNoteUse(key, start.Add(later)))
	}
	wantEqual(t, "which are noted", noted, []bool{false, false, true, false, true})
}

// An admin's key that does nothing but rotate keys is in use too.
func TestARotationIsAUseOfTheKeyThatCalls(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		admin, viewer := w.newKey(t, s, Admin, 10), w.newKey(t, s, Viewer, 11)
		must(s.RotateAPIKeyOf(t.Context(), admin.key, viewer.id, APIKey{Hash: [32]byte{12}}, 0, nil))(t)
		must(s.RotateAPIKey(t.Context(), admin.key, APIKey{Hash: [32]byte{13}}, 0, nil))(t)
		for _, k := range must(s.APIKeys(t.Context(), w.key))(t) {
			wantEqual(t, "the use of the key of "+string(k.Role), !k.LastUsed.IsZero(), k.ID != viewer.id)
		}
	})
}

func TestTwoAdminsCannotDeleteEachOthersKeysAtOnce(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
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
		wantEqual(t, "how many of both were refused", failed, 1)
	})
}

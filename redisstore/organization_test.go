package redisstore

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAnOrganizationIsOpenedByItsKey(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for _, metadata := range []string{"", `{"plan":"größer"}`} {
			key := APIKey{Organization: NewRootID(), Hash: [32]byte{0, 1, 0xff, '\n'}}
			before := time.Now().Add(-time.Millisecond)
			created := must(s.CreateOrganization(t.Context(), "", key, "Acme & Söhne", metadata, nil))(t)
			if created.Created.Before(before) || created.Created.After(time.Now()) {
				t.Errorf("created at %s", created.Created)
			}
			want := Organization{ID: key.Organization, Name: "Acme & Söhne", Metadata: metadata, Created: created.Created}
			wantEqual(t, "what is created", created, want)
			wantEqual(t, "what is read", must(s.Organization(t.Context(), key))(t), want)
		}
	})
}

// An organization begins with key 1, and each rotation makes the next. "read", "list" and "create" do so with a key; "refuse" says
// that it is invalid for everything, "bar" that it may not rotate, because its successor was used.
func TestARotationDecidesWhichKeysOfAnOrganizationAreGood(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]string{
		"one without grace ends at once":  "rotate 1 0s, refuse 1, read 2",
		"one lives for its grace":         "rotate 1 1m, read 1, list 1, create 1, read 2, list 2, create 2",
		"one ends after its grace":        "rotate 1 30ms, await 1, refuse 1, read 2",
		"one cannot prolong its grace":    "rotate 1 1m, rotate 1 1h, rotate 1 1h",
		"only the last two are ever good": "rotate 1 1m, rotate 2 1m, refuse 1, read 2, read 3",
		// If the reply to a rotation is lost, the client still uses the presented key and no client knows the new one.
		"a repeated rotation replaces the lost key": "rotate 1 1m, rotate 1 1m, refuse 2, read 1, read 3",
		// A stolen key in its grace time must not take the organization over.
		"a read is a use of a successor":   "read 1, rotate 1 1m, read 1, rotate 1 1m, read 3, bar 1, read 1, rotate 3 1m, rotate 3 1m, refuse 4, read 5",
		"a list is a use of a successor":   "read 1, rotate 1 1m, read 1, rotate 1 1m, list 3, bar 1, read 1, rotate 3 1m, rotate 3 1m, refuse 4, read 5",
		"a create is a use of a successor": "read 1, rotate 1 1m, read 1, rotate 1 1m, create 3, bar 1, read 1, rotate 3 1m, rotate 3 1m, refuse 4, read 5",
	} {
		t.Run(name, func(t *testing.T) {
			onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
				instances, last, ends := []*Store{s, anotherInstance(t, s)}, byte(1), map[string]time.Time{}
				for step := range strings.SplitSeq(steps, ", ") {
					words := strings.Fields(step)
					key := APIKey{Organization: w.key.Organization, Hash: [32]byte{byte(must(strconv.Atoi(words[1]))(t))}}
					read := func() error { return errOf(s.Organization(t.Context(), key)) }
					create := func() error { return errOf(s.CreateAgent(t.Context(), key, Agent{Name: "scout"}, [32]byte{}, nil)) }
					rotate := func(at *Store, grace time.Duration) (time.Time, error) {
						return at.RotateAPIKey(t.Context(), key, APIKey{Hash: [32]byte{last + 1}}, grace, nil)
					}
					switch words[0] {
					case "read":
						wantError(t, step, read(), nil)
					case "list":
						wantError(t, step, errOf(s.Agents(t.Context(), key, Query{Limit: 1})), nil)
					case "create":
						wantError(t, step, create(), nil)
					case "await":
						eventually(t, step, func() bool { return read() != nil })
					case "rotate":
						grace, before := must(time.ParseDuration(words[2]))(t), time.Now().Add(-time.Millisecond)
						until := must(rotate(s, grace))(t)
						if first, again := ends[words[1]]; again && !until.Equal(first) {
							t.Errorf("%s: asked again, the old key ends at %s, at first at %s", step, until, first)
						} else if !again && grace > 0 && (until.Before(before.Add(grace)) || until.After(time.Now().Add(grace))) {
							t.Errorf("%s: the old key ends at %s, %s after %s", step, until, grace, before)
						}
						last, ends[words[1]] = last+1, until
					case "refuse", "bar":
						unchanged := w.unchanged(t, s)
						want := ErrSuccessorUsed
						if words[0] == "refuse" {
							want = ErrInvalidAPIKey
							wantError(t, step, read(), want)
							wantError(t, step, create(), want)
						}
						for _, instance := range instances { // what one instance was asked counts for all
							wantError(t, step, errOf(rotate(instance, time.Minute)), want)
						}
						unchanged()
					}
				}
			})
		})
	}
}

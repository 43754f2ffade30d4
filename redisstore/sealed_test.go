package redisstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// plainSeal is a seal for tests that opens with the same secret.
type plainSeal string

func (s plainSeal) Seal(credential string) string { return string(s) + ":" + credential }

func (s plainSeal) Open(sealed string) (string, bool) {
	return strings.CutPrefix(sealed, string(s)+":")
}

const longKey = "8d5bb0f3-7c34-4a58-9b0e-5f1f6a0c3a11"

// sealedOnce is an idempotency key for a request that would issue this credential.
func sealedKey(secret, credential string) *Idempotency {
	return &Idempotency{Key: longKey, Fingerprint: [32]byte{1}, Seal: plainSeal(secret), Credential: credential}
}

// giving is an operation that issues a credential; it returns the parts of its response.
type giving struct {
	script kernel.KeyedScript
	do     func(ctx context.Context, s *Store, hash [32]byte, idem *Idempotency) (any, error)
}

func (w tenant) everyGiving() map[string]giving {
	return map[string]giving{
		"an organization": {createOrganization, func(ctx context.Context, s *Store, hash [32]byte, idem *Idempotency) (any, error) {
			return s.CreateOrganization(ctx, w.agent.Name, APIKey{Organization: NewOrganizationID(w.agent.Name, idem), Hash: hash}, "acme", `{"n":1}`, idem)
		}},
		"an agent": {createAgent, func(ctx context.Context, s *Store, hash [32]byte, idem *Idempotency) (any, error) {
			a, err := s.CreateAgent(ctx, w.key, Agent{Name: "scout", Scopes: []string{"read"}, Metadata: `{"n":1}`}, hash, idem)
			return [4]any{a.ID, a.Created, a.Name, a.Metadata}, err
		}},
		"a secret": {rotateAgentSecret, func(ctx context.Context, s *Store, hash [32]byte, idem *Idempotency) (any, error) {
			return s.RotateAgentSecret(ctx, w.key, w.agent.ID, SecretRotation{Hash: hash}, idem)
		}},
		"another API key": {createAPIKey, func(ctx context.Context, s *Store, hash [32]byte, idem *Idempotency) (any, error) {
			k, err := s.CreateAPIKey(ctx, w.key, APIKey{Hash: hash}, NewAPIKey{Name: "n", Role: Viewer, Lifetime: time.Hour, Idempotency: idem})
			return [4]any{k.ID, k.Created, k.Expires, k.Role}, err
		}},
		"an API key, with time": {rotateAPIKey, func(ctx context.Context, s *Store, hash [32]byte, idem *Idempotency) (any, error) {
			return s.RotateAPIKey(ctx, w.key, APIKey{Hash: hash}, time.Minute, idem)
		}},
		"an API key, at once": {rotateAPIKey, func(ctx context.Context, s *Store, hash [32]byte, idem *Idempotency) (any, error) {
			return s.RotateAPIKey(ctx, w.key, APIKey{Hash: hash}, 0, idem)
		}},
	}
}

func onEachGiving(t *testing.T, s *Store, test func(t *testing.T, w tenant, g giving)) {
	t.Helper()
	for name := range (tenant{}).everyGiving() {
		t.Run(name, func(t *testing.T) {
			w := newTenant(t, s, NewSession{MaxActions: 1})
			w.agent.Name = uuid.NewString() // the creator of the test's organization
			test(t, w, w.everyGiving()[name])
		})
	}
}

func TestARepeatedRequestForACredentialGetsTheFirst(t *testing.T) {
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		onEachGiving(t, s, func(t *testing.T, w tenant, g giving) {
			loadScripts(t, s)
			lost := func() error {
				return errOf(g.do(WithRequestID(t.Context(), "lost"), s, [32]byte{1}, sealedKey("mine", "first")))
			}
			wantEqual(t, "how often it was sent", wantLost(t, "the first time", p, g.script.Keyed.SHA(), lost, ErrOutcomeUnknown), 1)
			var answers []any
			for i := range 3 {
				again := sealedKey("mine", "another")
				answer, err := g.do(t.Context(), s, [32]byte{byte(2 + i)}, again)
				if err != nil || !again.Outcome.Replayed || again.Credential != "first" || again.Outcome.FirstRequest != "lost" {
					t.Fatalf("%v, %+v", err, again)
				}
				answers = append(answers, answer)
			}
			wantEqual(t, "the answers", answers, []any{answers[0], answers[0], answers[0]})
			wantIndexed(t, s, s.keys.OrganizationOpen(w.key.Organization), w.session.ID)
		})
	})
}

func TestAReplayWithoutTheCredentialThatOpensTheSealIsRefused(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		onEachGiving(t, s, func(t *testing.T, w tenant, g giving) {
			must(g.do(t.Context(), s, [32]byte{1}, sealedKey("mine", "first")))(t)
			sealed, reused := ErrSealed, ErrIdempotencyKeyReused
			if errOf(s.Organization(t.Context(), w.key)) == ErrInvalidAPIKey { // it has ended its own
				sealed, reused = ErrInvalidAPIKey, ErrInvalidAPIKey
			}
			other := sealedKey("theirs", "another")
			wantError(t, "with another secret", errOf(g.do(t.Context(), s, [32]byte{2}, other)), sealed)
			changed := sealedKey("mine", "another")
			changed.Fingerprint = [32]byte{2}
			wantError(t, "another request", errOf(g.do(t.Context(), s, [32]byte{2}, changed)), reused)
			if other.Outcome.Replayed || changed.Outcome.Replayed || other.Credential != "another" {
				t.Errorf("%+v, %+v", other, changed)
			}
		})
	})
}

func TestOneAgentIsMadeOfManyEqualRequestsAtOnce(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		type made struct {
			id         uuid.UUID
			credential string
		}
		results := make(chan made, 8)
		for i := range cap(results) {
			go func() {
				idem := sealedKey("mine", string(rune('a'+i)))
				a, err := s.CreateAgent(t.Context(), w.key, Agent{Name: "scout"}, [32]byte{byte(i)}, idem)
				wantError(t, "CreateAgent", err, nil)
				results <- made{a.ID, idem.Credential}
			}()
		}
		first := <-results
		for range cap(results) - 1 {
			wantEqual(t, "what another got", <-results, first)
		}
		wantIndexed(t, s, s.keys.OrganizationAgents(w.key.Organization), w.agent.ID, first.id)
		want := [32]byte{first.credential[0] - 'a'}
		wantEqual(t, "the agent's secret", must(peek(t, s).HGet(t.Context(), s.keys.Agent(first.id), "secret").Result())(t), string(want[:]))
	})
}

// A key that has ended gets its successor only with an unguessable idempotency key.
func TestAnEndedAPIKeyGetsItsSuccessorAgainByAnUnguessableKeyAlone(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for _, test := range []struct {
			key   string
			grace time.Duration
			want  error
		}{
			{longKey, 0, nil},
			{longKey[:32], 0, nil},
			{longKey[:31], 0, ErrInvalidAPIKey},
			{longKey[:31], time.Minute, nil},
			{"k", 0, ErrInvalidAPIKey},
		} {
			w := newTenant(t, s, NewSession{MaxActions: 1})
			idem := func() *Idempotency { return &Idempotency{Key: test.key, Seal: plainSeal("old"), Credential: "new"} }
			must(s.RotateAPIKey(t.Context(), w.key, APIKey{Hash: [32]byte{9}}, test.grace, idem()))(t)
			wantUnchanged(t, s, test.key, func() {
				again := idem()
				_, err := s.RotateAPIKey(t.Context(), w.key, APIKey{Hash: [32]byte{10}}, test.grace, again)
				wantError(t, test.key, err, test.want)
				wantEqual(t, test.key+" is replayed", again.Outcome.Replayed, err == nil)
				if test.grace == 0 {
					stranger := idem()
					stranger.Key = longKey + "x"
					wantError(t, "by another idempotency key", errOf(s.RotateAPIKey(t.Context(), w.key, APIKey{Hash: [32]byte{10}}, 0, stranger)), ErrInvalidAPIKey)
				}
			})
		}
	})
}

// A key that was deleted has no part in another key that it rotated, whatever idempotency key its holder knows. A key that rotated
// itself by its id has.
func TestADeletedAPIKeyGetsNoOtherKeyAgain(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		thief, other := w.newKey(t, s, Admin, 10), w.newKey(t, s, Admin, 11)
		own, hash := w.newKey(t, s, Admin, 14), byte(20)
		rotate := func(what string, by, of otherKey, key string, replayed bool, want error) {
			hash++
			idem := &Idempotency{Key: key, Seal: plainSeal("old"), Credential: "new"}
			err := errOf(s.RotateAPIKeyOf(t.Context(), by.key, of.id, APIKey{Hash: [32]byte{hash}}, 0, idem))
			wantError(t, what, err, want)
			wantEqual(t, what+" is replayed", idem.Outcome.Replayed, replayed)
		}
		rotate("by a key that is valid", thief, other, longKey, false, nil)
		rotate("by it again", thief, other, longKey, true, nil)
		mustDo(t, s.DeleteAPIKey(t.Context(), w.key, thief.id))
		rotate("by a deleted key", thief, other, longKey, false, ErrInvalidAPIKey)
		rotate("by a key of itself", own, own, longKey+"2", false, nil)
		rotate("by a key that its own rotation ended", own, own, longKey+"2", true, nil)
	})
}

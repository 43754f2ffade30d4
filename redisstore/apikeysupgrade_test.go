package redisstore

import (
	"context"
	"testing"
	"time"
)

// The scripts of the version before that check and replace API keys.
var (
	beforeAuthenticate = beforeScript("authenticate_organization", reads)
	beforeNoteUse      = beforeScript("note_key_used", bestEffort)
	beforeRotateKey    = beforeScript("rotate_api_key", writes)
)

// accepts is how an instance of the version before checks and notes an API key.
func (b before) accepts(ctx context.Context, key APIKey) error {
	keys := []string{b.keys.organization(key.Organization)}
	if _, err := b.client.Run(ctx, ownFlow, beforeAuthenticate, keys, key.Hash); err != nil {
		return err
	}
	_, err := b.client.Run(ctx, ownFlow, beforeNoteUse, keys, key.Hash)
	return err
}

func (b before) rotateKey(ctx context.Context, key, fresh APIKey, grace time.Duration) error {
	keys := []string{b.keys.organization(key.Organization)}
	_, err := b.client.Run(ctx, ownFlow, beforeRotateKey, keys, key.Hash, fresh.Hash, grace.Milliseconds())
	return err
}

// In a rolling upgrade the first key works everywhere, whichever version replaces it. Other keys are new: the version before
// refuses them.
func TestTheFirstKeyWorksOnBothVersionsDuringAnUpgrade(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx, old := t.Context(), before{s}
		w := newTenant(t, s, NewSession{MaxActions: 9})
		viewer := w.newKey(t, s, Viewer, 10)
		wantError(t, "the first key, before", old.accepts(ctx, w.key), nil)
		wantError(t, "another key, before", old.accepts(ctx, viewer.key), ErrInvalidAPIKey)

		second := APIKey{Organization: w.key.Organization, Hash: [32]byte{20}, Hint: "2222"}
		wantError(t, "rotation, before", old.rotateKey(ctx, w.key, second, time.Hour), nil)
		for name, key := range map[string]APIKey{"in its grace time": w.key, "rotated before": second} {
			_, err := s.Organization(ctx, key)
			wantError(t, "a key "+name, err, nil)
		}
		_, err := s.RotateAPIKey(ctx, w.key, APIKey{Hash: [32]byte{21}}, 0, nil)
		wantError(t, "rotation by the key in its grace time", err, ErrSuccessorUsed)

		third := APIKey{Organization: w.key.Organization, Hash: [32]byte{22}, Hint: "3333"}
		must(s.RotateAPIKey(ctx, second, third, time.Hour, nil))(t)
		wantError(t, "the key in its grace time, before", old.accepts(ctx, second), nil)
		wantError(t, "rotation by it, before", old.rotateKey(ctx, second, APIKey{Hash: [32]byte{23}}, 0), nil) // third is unused
		_, err = s.Organization(ctx, third)
		wantError(t, "the key that was lost", err, ErrInvalidAPIKey)
		_, err = s.Organization(ctx, viewer.needing(Viewer))
		wantError(t, "another key", err, nil)
	})
}

func TestTheVersionBeforeRefusesAFirstKeyThatIsDeleted(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx, old := t.Context(), before{s}
		w := newTenant(t, s, NewSession{MaxActions: 9})
		admin := w.newKey(t, s, Admin, 10)
		next := APIKey{Organization: w.key.Organization, Hash: [32]byte{20}}
		must(s.RotateAPIKey(ctx, w.key, next, time.Hour, nil))(t)
		if err := s.DeleteAPIKey(ctx, admin.key, w.key.Organization); err != nil {
			t.Fatal(err)
		}
		for _, key := range []APIKey{w.key, next} {
			wantError(t, "a deleted key, before", old.accepts(ctx, key), ErrInvalidAPIKey)
			wantError(t, "its rotation, before", old.rotateKey(ctx, key, APIKey{Hash: [32]byte{23}}, 0), ErrInvalidAPIKey)
			_, err := s.Organization(ctx, key)
			wantError(t, "a deleted key", err, ErrInvalidAPIKey)
		}
	})
}

package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"remit/redisstore/internal/kernel"
)

func TestOneKeyIsKeptOfAllThatAreOfferedAtOnce(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		stores := []*Store{s, anotherInstance(t, s)}
		for _, kind := range []KeyKind{SigningKeys, TokenKeys} {
			concurrently(t, 20, func(i int) {
				err := stores[i%2].KeepFirstKey(context.Background(), kind, fmt.Sprint("key", i), fmt.Sprint("material ", i))
				wantError(t, "KeepFirstKey", err, nil)
			})
			records, now := must2(s.Keys(t.Context(), kind))(t)
			if len(records) != 1 {
				t.Fatalf("%d keys are kept", len(records))
			}
			r := records[0]
			if r.Material != "material "+r.ID[len("key"):] || !r.Ends.IsZero() || r.SignsFrom.After(now) || r.Created != r.SignsFrom {
				t.Errorf("at %s the key is %+v", now, r)
			}
			wantEqual(t, "it is kept for ever", must(peek(t, s).TTL(t.Context(), s.keys.KeyRecords(kind)).Result())(t), -1)
		}
	})
}

func TestARotatedKeySignsLaterAndTheOneBeforeEndsAfterIt(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		mustDo(t, s.KeepFirstKey(ctx, SigningKeys, "a", "first"))
		signsFrom := must(s.RotateKey(ctx, SigningKeys, "b", "second", time.Hour, 2*time.Hour))(t)
		records, now := must2(s.Keys(ctx, SigningKeys))(t)
		if len(records) != 2 {
			t.Fatalf("%d keys", len(records))
		}
		b, a := records[0], records[1]
		if b.ID != "b" || b.Material != "second" || !b.SignsFrom.Equal(signsFrom) || !b.Ends.IsZero() {
			t.Errorf("the new key is %+v, signing from %s", b, signsFrom)
		}
		if wait := signsFrom.Sub(now); wait < 59*time.Minute || wait > time.Hour {
			t.Errorf("it signs in %s", wait)
		}
		if a.ID != "a" || a.Material != "first" || a.Ends.Sub(signsFrom) != 2*time.Hour {
			t.Errorf("the key before is %+v", a)
		}
		pending := &PendingKeyError{ID: "b", SignsFrom: signsFrom}
		wantError(t, "a rotation during a rotation", errOf(s.RotateKey(ctx, SigningKeys, "c", "third", 0, 0)), pending)
	})
}

func TestKeysThatHaveEndedAreGone(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		mustDo(t, s.KeepFirstKey(ctx, TokenKeys, "a", "first"))
		must(s.RotateKey(ctx, TokenKeys, "b", "second", 0, 0))(t)
		if records, _ := must2(s.Keys(ctx, TokenKeys))(t); len(records) != 1 || records[0].ID != "b" {
			t.Errorf("%+v", records)
		}
		must(s.RotateKey(ctx, TokenKeys, "c", "third", 0, time.Hour))(t)
		wantEqual(t, "how many are kept after the next rotation", len(must(peek(t, s).HKeys(ctx, s.keys.KeyRecords(TokenKeys)).Result())(t)), 2)
	})
}

func TestRetiringAKey(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		signsFrom := must(s.RotateKey(ctx, SigningKeys, "a", "first", time.Hour, time.Hour))(t)
		if records, now := must2(s.Keys(ctx, SigningKeys))(t); len(records) != 1 || records[0].SignsFrom.After(now) || signsFrom.After(now) {
			t.Errorf("the first key signs from %s, now is %s: %+v", signsFrom, now, records)
		}
		must(s.RotateKey(ctx, SigningKeys, "b", "second", time.Hour, time.Hour))(t)
		for _, step := range []struct {
			id   string
			want error
			left int
		}{
			{"x", kernel.ErrUnknownKey, 2},
			{"a", ErrKeyInUse, 2},
			{"b", nil, 1}, // withdrawn: a has no successor any more
			{"b", kernel.ErrUnknownKey, 1},
			{"a", ErrKeyInUse, 1}, // the only one
		} {
			wantError(t, "retiring "+step.id, s.RetireKey(ctx, SigningKeys, step.id), step.want)
			records, _ := must2(s.Keys(ctx, SigningKeys))(t)
			wantEqual(t, "how many are left after "+step.id, len(records), step.left)
		}
		if records, _ := must2(s.Keys(ctx, SigningKeys))(t); !records[0].Ends.IsZero() {
			t.Errorf("the key whose successor was withdrawn ends at %s", records[0].Ends)
		}
	})
}

// A rotation that publishes for no time may happen in the millisecond in which the first key was made.
func TestOfTwoKeysFromTheSameMillisecondOnTheLastOneSigns(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		began := time.Now().Add(-time.Minute).UnixMilli()
		ends := time.Now().Add(time.Hour).UnixMilli()
		for _, ids := range [][2]string{{"a", "b"}, {"d", "c"}, {"e", "f"}, {"h", "g"}} {
			first, last := ids[0], ids[1]
			key := s.keys.KeyRecords(SigningKeys)
			must(peek(t, s).Del(t.Context(), key).Result())(t)
			must(peek(t, s).HSet(t.Context(), key, first, fmt.Sprintf("%d %d %d first", began, began, ends),
				last, fmt.Sprintf("%d %d 0 last", began, began)).Result())(t)
			if records, _ := must2(s.Keys(t.Context(), SigningKeys))(t); len(records) != 2 || records[0].ID != last {
				t.Errorf("%v are read; %s is to sign", records, last)
			}
			wantError(t, "retiring "+last, s.RetireKey(t.Context(), SigningKeys, last), ErrKeyInUse)
			wantError(t, "retiring "+first, s.RetireKey(t.Context(), SigningKeys, first), nil)
		}
	})
}

func TestInstancesShareTheFirstIssuer(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		for _, own := range []string{"http://first", "http://second"} {
			wantEqual(t, own, must(s.KeepIssuer(ctx, own))(t), "http://first")
		}
		mustDo(t, s.SetIssuer(ctx, "http://third"))
		wantEqual(t, "after it was set", must(s.KeepIssuer(ctx, "http://fourth"))(t), "http://third")
	})
}

func TestAnUnreadableKeyRecordDoesNotHideTheOthers(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		mustDo(t, s.KeepFirstKey(ctx, SigningKeys, "a", "first"))
		must(peek(t, s).HSet(ctx, s.keys.KeyRecords(SigningKeys), "zzz", "junk").Result())(t)
		must(s.RotateKey(ctx, SigningKeys, "b", "second", 5*time.Millisecond, time.Hour))(t)
		eventually(t, "the new key signs", func() bool {
			records, now := must2(s.Keys(ctx, SigningKeys))(t)
			return records[0].ID == "b" && records[0].SignsFrom.Before(now)
		})
		for _, id := range []string{"a", "zzz"} {
			wantError(t, "retiring "+id, s.RetireKey(ctx, SigningKeys, id), nil)
		}
		if records, _ := must2(s.Keys(ctx, SigningKeys))(t); len(records) != 1 || records[0].ID != "b" {
			t.Errorf("%+v", records)
		}
	})
}

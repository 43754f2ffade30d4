package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"remit/redisstore/internal/kernel"
)

func TestOneKeyIsKeptOfAllThatAreOfferedAtOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		second := must(Open(s.config))(t)
		defer second.Close()
		for _, kind := range []KeyKind{SigningKeys, TokenKeys} {
			var instances sync.WaitGroup
			for i := range 20 {
				store := s
				if i%2 == 1 {
					store = second
				}
				instances.Go(func() {
					if err := store.KeepFirstKey(context.Background(), kind, fmt.Sprint("key", i), fmt.Sprint("material ", i)); err != nil {
						t.Error(err)
					}
				})
			}
			instances.Wait()
			records, now, err := s.Keys(t.Context(), kind)
			if err != nil || len(records) != 1 {
				t.Fatalf("%d keys are kept, %v", len(records), err)
			}
			r := records[0]
			if r.Material != "material "+r.ID[len("key"):] || !r.Ends.IsZero() || r.SignsFrom.After(now) || r.Created != r.SignsFrom {
				t.Errorf("at %s the key is %+v", now, r)
			}
		}
	})
}

func TestAKeyIsKeptForEver(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		if err := s.KeepFirstKey(t.Context(), SigningKeys, "a", "key"); err != nil {
			t.Fatal(err)
		}
		if ttl := must(peek(t, s).TTL(t.Context(), s.keys.KeyRecords(SigningKeys)).Result())(t); ttl != -1 {
			t.Errorf("for %s", ttl)
		}
	})
}

func TestARotatedKeySignsLaterAndTheOneBeforeEndsAfterIt(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		if err := s.KeepFirstKey(ctx, SigningKeys, "a", "first"); err != nil {
			t.Fatal(err)
		}
		signsFrom := must(s.RotateKey(ctx, SigningKeys, "b", "second", time.Hour, 2*time.Hour))(t)
		records, now, err := s.Keys(ctx, SigningKeys)
		if err != nil || len(records) != 2 {
			t.Fatalf("%d keys, %v", len(records), err)
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
		var pending *PendingKeyError
		if _, err := s.RotateKey(ctx, SigningKeys, "c", "third", 0, 0); !errors.As(err, &pending) || pending.ID != "b" || !pending.SignsFrom.Equal(signsFrom) {
			t.Errorf("a rotation during a rotation: %v", err)
		}
	})
}

func TestKeysThatHaveEndedAreGone(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		if err := s.KeepFirstKey(ctx, TokenKeys, "a", "first"); err != nil {
			t.Fatal(err)
		}
		must(s.RotateKey(ctx, TokenKeys, "b", "second", 0, 0))(t)
		records, _, err := s.Keys(ctx, TokenKeys)
		if err != nil || len(records) != 1 || records[0].ID != "b" {
			t.Errorf("%+v, %v", records, err)
		}
		must(s.RotateKey(ctx, TokenKeys, "c", "third", 0, time.Hour))(t)
		if kept := must(peek(t, s).HKeys(ctx, s.keys.KeyRecords(TokenKeys)).Result())(t); len(kept) != 2 {
			t.Errorf("after the next rotation %v are kept", kept)
		}
	})
}

func TestRetiringAKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		if err := s.KeepFirstKey(ctx, SigningKeys, "a", "first"); err != nil {
			t.Fatal(err)
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
		} {
			if err := s.RetireKey(ctx, SigningKeys, step.id); !errors.Is(err, step.want) {
				t.Errorf("retiring %s: %v, want %v", step.id, err, step.want)
			}
			records, _, err := s.Keys(ctx, SigningKeys)
			if err != nil || len(records) != step.left {
				t.Errorf("after %s: %+v, %v", step.id, records, err)
			}
		}
		records, _, _ := s.Keys(ctx, SigningKeys)
		if !records[0].Ends.IsZero() {
			t.Errorf("the key whose successor was withdrawn ends at %s", records[0].Ends)
		}
		must(s.RotateKey(ctx, SigningKeys, "c", "third", 0, time.Hour))(t)
		if err := s.RetireKey(ctx, SigningKeys, "a"); err != nil {
			t.Errorf("retiring a key that verifies only: %v", err)
		}
	})
}

// A rotation that publishes for no time may happen in the millisecond in which the first key was made.
func TestOfTwoKeysFromTheSameMillisecondOnTheLastOneSigns(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		began := time.Now().Add(-time.Minute).UnixMilli()
		ends := time.Now().Add(time.Hour).UnixMilli()
		for _, ids := range [][2]string{{"a", "b"}, {"d", "c"}, {"e", "f"}, {"h", "g"}} {
			first, last := ids[0], ids[1]
			key := s.keys.KeyRecords(SigningKeys)
			must(peek(t, s).Del(t.Context(), key).Result())(t)
			must(peek(t, s).HSet(t.Context(), key, first, fmt.Sprintf("%d %d %d first", began, began, ends),
				last, fmt.Sprintf("%d %d 0 last", began, began)).Result())(t)
			records, _, err := s.Keys(t.Context(), SigningKeys)
			if err != nil || len(records) != 2 || records[0].ID != last {
				t.Errorf("%v are read, %v; %s is to sign", records, err, last)
			}
			wantError(t, "retiring "+last, s.RetireKey(t.Context(), SigningKeys, last), ErrKeyInUse)
			wantError(t, "retiring "+first, s.RetireKey(t.Context(), SigningKeys, first), nil)
		}
	})
}

func TestInstancesShareTheFirstIssuer(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		for _, own := range []string{"http://first", "http://second"} {
			if kept := must(s.KeepIssuer(ctx, own))(t); kept != "http://first" {
				t.Errorf("%s gets %s", own, kept)
			}
		}
		if err := s.SetIssuer(ctx, "http://third"); err != nil {
			t.Fatal(err)
		}
		if kept := must(s.KeepIssuer(ctx, "http://fourth"))(t); kept != "http://third" {
			t.Errorf("after it was set, %s is kept", kept)
		}
	})
}

func TestTheOnlyKeyCannotBeLost(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		signsFrom := must(s.RotateKey(ctx, SigningKeys, "a", "first", time.Hour, time.Hour))(t)
		records, now, err := s.Keys(ctx, SigningKeys)
		if err != nil || len(records) != 1 || records[0].SignsFrom.After(now) || signsFrom.After(now) {
			t.Errorf("the first key signs from %s, now is %s: %+v, %v", signsFrom, now, records, err)
		}
		wantError(t, "retiring it", s.RetireKey(ctx, SigningKeys, "a"), ErrKeyInUse)
	})
}

func TestAnUnreadableKeyRecordDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx := t.Context()
		if err := s.KeepFirstKey(ctx, SigningKeys, "a", "first"); err != nil {
			t.Fatal(err)
		}
		must(peek(t, s).HSet(ctx, s.keys.KeyRecords(SigningKeys), "zzz", "junk").Result())(t)
		must(s.RotateKey(ctx, SigningKeys, "b", "second", 5*time.Millisecond, time.Hour))(t)
		eventually(t, "the new key signs", func() bool {
			records, now, err := s.Keys(ctx, SigningKeys)
			return err == nil && records[0].ID == "b" && records[0].SignsFrom.Before(now)
		})
		for _, id := range []string{"a", "zzz"} {
			if err := s.RetireKey(ctx, SigningKeys, id); err != nil {
				t.Errorf("retiring %s: %v", id, err)
			}
		}
		if records, _, err := s.Keys(ctx, SigningKeys); err != nil || len(records) != 1 || records[0].ID != "b" {
			t.Errorf("%+v, %v", records, err)
		}
	})
}

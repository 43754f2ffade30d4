package redisstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// aboutNow fails the test unless the time is this far from now.
func aboutNow(t *testing.T, what string, got time.Time, ahead time.Duration) {
	t.Helper()
	if off := time.Until(got) - ahead; off.Abs() > time.Minute {
		t.Errorf("%s: %s, want in about %s", what, got, ahead)
	}
}

// wantFrom fails the test unless the store says, to within the time that the call takes, that tokens name their audience from this
// time on. It is one of Redis's clock, which is that of the test.
func wantFrom(t *testing.T, what string, s *Store, want time.Time) {
	t.Helper()
	began := time.Now()
	got := must(s.AudiencesFrom(t.Context()))(t)
	if took := time.Since(began); got.Sub(want).Abs() > took+time.Millisecond {
		t.Errorf("%s: from %s on, want %s, and the call took %s", what, got, want, took)
	}
}

// storedFrom is the time of Redis's clock that the store keeps.
func storedFrom(t *testing.T, s *Store) time.Time {
	t.Helper()
	return time.UnixMilli(must(peek(t, s).Get(t.Context(), s.keys.audiencesFrom()).Int64())(t))
}

func TestOnANewRedisAllTokensNameTheirAudience(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		s.keys.prefix += "new:"
		for range 2 {
			if from := must(s.AudiencesFrom(t.Context()))(t); !from.IsZero() {
				t.Errorf("from %s on", from)
			}
			must(s.KeepIssuer(t.Context(), "https://remit.example"))(t)
		}
	})
}

func TestOnARedisThatAnEarlierVersionHasUsedTokensNameTheirAudienceAnHourLater(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		prefix := s.keys.prefix
		for name, use := range map[string]func() error{
			"an issuer":     func() error { _, err := s.KeepIssuer(t.Context(), "https://remit.example"); return err },
			"a signing key": func() error { return s.KeepFirstKey(t.Context(), SigningKeys, "a", "key") },
			"a token key":   func() error { return s.KeepFirstKey(t.Context(), TokenKeys, "a", "key") },
			"an organization": func() error {
				return peek(t, s).ZAdd(t.Context(), s.keys.holdings(), redis.Z{Score: 1, Member: "an organization!"}).Err()
			},
		} {
			s.keys.prefix = prefix + name + ":"
			if err := use(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			aboutNow(t, name, must(s.AudiencesFrom(t.Context()))(t), time.Hour)
			from := storedFrom(t, s)
			if early, late := began.Add(time.Hour-time.Millisecond), time.Now().Add(time.Hour); from.Before(early) || from.After(late) {
				t.Errorf("%s: %s is stored, want from %s to %s", name, from, early, late)
			}
			wantFrom(t, name, s, from)
			second := must(Open(s.config))(t)
			defer second.Close()
			second.keys = s.keys
			wantFrom(t, name+", at a later instance", second, from)
			if again := storedFrom(t, s); !again.Equal(from) {
				t.Errorf("%s: a later instance stores %s instead of %s", name, again, from)
			}
			past := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
			must(peek(t, s).Set(t.Context(), s.keys.audiencesFrom(), strconv.FormatInt(past.UnixMilli(), 10), 0).Result())(t)
			wantFrom(t, name+", an hour later", s, past)
		}
	})
}

func TestWhileRedisRefusesWritesTheHourBeginsWithEachInstance(t *testing.T) {
	t.Parallel()
	onEachRefusing(t, []refusing{isFull, lacksReplicas}, func(t *testing.T, s *Store, _ refusing, refuse, accept func()) {
		must(s.KeepIssuer(t.Context(), "https://remit.example"))(t)
		refuse()
		aboutNow(t, "refused", must(s.AudiencesFrom(t.Context()))(t), time.Hour)
		accept()
		aboutNow(t, "afterwards", must(s.AudiencesFrom(t.Context()))(t), time.Hour)
		wantFrom(t, "stored", s, storedFrom(t, s))
	})
}

// The clocks of Redis and of an instance may differ by hours, and tokens are issued by the instance's.
func TestTokensNameTheirAudienceAnHourLaterByTheInstancesClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{3 * time.Hour, -3 * time.Hour, 400 * 24 * time.Hour} {
		withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
			step(ahead)
			must(s.KeepIssuer(t.Context(), "https://remit.example"))(t)
			for _, passed := range []time.Duration{0, 0, 20 * time.Minute, 50 * time.Minute, time.Hour, 5 * time.Hour} {
				step(ahead + passed)
				aboutNow(t, "with the clock "+ahead.String()+" ahead, after "+passed.String(), must(s.AudiencesFrom(t.Context()))(t), time.Hour-passed)
			}
		})
	}
}

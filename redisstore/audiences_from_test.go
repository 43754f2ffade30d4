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
			"a token key":   func() error { return s.KeepFirstKey(t.Context(), RefreshKeys, "a", "key") },
			"an organization": func() error {
				return peek(t, s).ZAdd(t.Context(), s.keys.holdings(), redis.Z{Score: 1, Member: "an organization!"}).Err()
			},
		} {
			s.keys.prefix = prefix + name + ":"
			if err := use(); err != nil {
				t.Fatal(err)
			}
			from := must(s.AudiencesFrom(t.Context()))(t)
			aboutNow(t, name, from, time.Hour)
			second := must(Open(s.config))(t)
			defer second.Close()
			second.keys = s.keys
			if again := must(second.AudiencesFrom(t.Context()))(t); !again.Equal(from.Truncate(time.Millisecond)) {
				t.Errorf("%s: a later instance says %s, the first %s", name, again, from)
			}
			past := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
			must(peek(t, s).Set(t.Context(), s.keys.audiencesFrom(), strconv.FormatInt(past.UnixMilli(), 10), 0).Result())(t)
			if got := must(s.AudiencesFrom(t.Context()))(t); !got.Equal(past) {
				t.Errorf("%s: an hour later: from %s on, want %s", name, got, past)
			}
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
		from := must(s.AudiencesFrom(t.Context()))(t)
		aboutNow(t, "afterwards", from, time.Hour)
		if stored := must(s.AudiencesFrom(t.Context()))(t); !stored.Equal(from) {
			t.Errorf("%s was not stored: %s", from, stored)
		}
	})
}

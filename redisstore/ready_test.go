package redisstore

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/redisproc"
)

func TestReadyWhenRedisCanBeWritten(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		warnings, err := s.Ready(t.Context())
		if err != nil || len(warnings) != 0 {
			t.Errorf("%q, %v", warnings, err)
		}
	})
}

func TestReadinessChecksLeaveNothingForLong(t *testing.T) {
	t.Parallel()
	server := startRedis(t, redisproc.Config{})
	s := openStore(t, Config{}, server.URL(), nil)
	for range 3 {
		must(s.Ready(t.Context()))(t)
	}
	keys := must(peek(t, s).Keys(t.Context(), "*").Result())(t)
	if len(keys) == 0 {
		t.Error("nothing was written")
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, s.config.Prefix+"r:{") {
			t.Errorf("key %s", key)
		}
		wantTTL(t, s, key, time.Minute)
	}
}

func TestNotReadyWhenRedisIsDown(t *testing.T) {
	t.Parallel()
	closed := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	_ = closed.Close()
	for _, scheme := range []string{"redis://", "redis+cluster://"} {
		s := openStore(t, Config{}, scheme+closed.Addr().String(), nil)
		_, err := s.Ready(t.Context())
		wantError(t, scheme, err, ErrUnavailable)
		wantError(t, "Ping", s.Ping(t.Context()), ErrUnavailable)
	}
}

func TestNotReadyWhenOnePrimaryOfAClusterIsDown(t *testing.T) {
	t.Parallel()
	addresses := startCluster(t, 3)
	s := openStore(t, Config{}, "redis+cluster://"+strings.Join(addresses, ","), nil)
	must(s.Ready(t.Context()))(t)
	_ = plainClient(t, "redis://"+addresses[1]).ShutdownNoSave(t.Context()).Err() // which has no reply
	eventually(t, "the primary is down", func() bool {
		conn, err := net.Dial("tcp", addresses[1])
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	for range 10 {
		_, err := s.Ready(t.Context())
		wantError(t, "Ready", err, ErrUnavailable)
	}
}

func TestReadyWarnsOfEviction(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy string
		warns  bool
	}{
		{"noeviction", false},
		{"allkeys-lru", true},
		{"volatile-ttl", true},
	} {
		t.Run(test.policy, func(t *testing.T) {
			t.Parallel()
			server := startRedis(t, redisproc.Config{Args: []string{"--maxmemory-policy", test.policy}})
			s := openStore(t, Config{}, server.URL(), nil)
			warnings := must(s.Ready(t.Context()))(t)
			warned := slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, test.policy) })
			if warned != test.warns || len(warnings) > 1 {
				t.Errorf("%q", warnings)
			}
		})
	}
}

func TestReadyDoesWithoutTheSettingsThatItMayNotRead(t *testing.T) {
	t.Parallel()
	server := startRedis(t, redisproc.Config{Args: []string{"--maxmemory-policy", "allkeys-lru"}})
	admin := plainClient(t, server.URL())
	must(admin.Do(t.Context(), "ACL", "SETUSER", "limited", "on", ">pw", "~*", "+@all", "-info").Result())(t)
	s := openStore(t, Config{}, "unix://limited:pw@"+socketOf(server), nil)
	if warnings, err := s.Ready(t.Context()); err != nil || len(warnings) != 0 {
		t.Errorf("%q, %v", warnings, err)
	}
	wrong := openStore(t, Config{}, "unix://limited:wrong@"+socketOf(server), nil)
	_, err := wrong.Ready(t.Context())
	wantError(t, "with a wrong password", err, ErrUnavailable)
}

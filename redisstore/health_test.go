package redisstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/test/redistest"
)

const (
	warnsOfLoss   = "Redis has no append-only file (appendonly no) and has made no snapshot since it started"
	warnsOfCrash  = "Redis has no append-only file (appendonly no): when it ends, what was written since its last snapshot"
	warnsOfMemory = "Redis has no limit on its memory (maxmemory 0)"

	warnsOfEviction = "Redis evicts data when memory is full (maxmemory-policy "
)

func TestReadyWarnsOfARedisThatForgetsEvictsOrGrowsWithoutEnd(t *testing.T) {
	t.Parallel()
	bounded, evicting := []string{"--maxmemory", "100mb"}, []string{"--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"}
	for name, test := range map[string]struct {
		cfg      redisproc.Config
		save     bool
		warnings []string
	}{
		"kept on a disk and bounded":     {redisproc.Config{Dir: t.TempDir(), Args: bounded}, false, nil},
		"kept on a disk without a bound": {redisproc.Config{Dir: t.TempDir()}, false, []string{warnsOfMemory}},
		"neither":                        {redisproc.Config{}, false, []string{warnsOfMemory, warnsOfLoss}},
		"snapshots alone":                {redisproc.Config{Args: bounded}, true, []string{warnsOfCrash}},
		"keys with a TTL evicted":        {redisproc.Config{Args: evicting}, false, []string{warnsOfEviction + "volatile-ttl)", warnsOfLoss}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.StartRedis(t, test.cfg)
			s := openStore(t, Config{}, server.URL(), nil)
			if test.save {
				client := redistest.PlainClient(t, server.URL())
				eventually(t, "a snapshot is made, seconds after the start", func() bool {
					return client.Save(t.Context()).Err() == nil && strings.HasPrefix(must(s.Ready(t.Context()))(t)[0], warnsOfCrash)
				})
			}
			warnings := must(s.Ready(t.Context()))(t)
			if !slices.EqualFunc(warnings, test.warnings, strings.HasPrefix) {
				t.Errorf("%q, want %q", warnings, test.warnings)
			}
		})
	}
}

func TestReadinessChecksLeaveNothingForLong(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{})
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
	for _, scheme := range []string{"redis://", "redis+cluster://"} {
		s := openStore(t, Config{}, scheme+"127.0.0.1:1", nil)
		wantError(t, scheme, errOf(s.Ready(t.Context())), ErrUnavailable)
		wantError(t, "Ping", s.Ping(t.Context()), ErrUnavailable)
	}
}

func TestNotReadyWhenOnePrimaryOfAClusterIsDown(t *testing.T) {
	t.Parallel()
	addresses := redistest.StartCluster(t, 3)
	s := openStore(t, Config{}, "redis+cluster://"+strings.Join(addresses, ","), nil)
	must(s.Ready(t.Context()))(t)
	_ = redistest.PlainClient(t, "redis://"+addresses[1]).ShutdownNoSave(t.Context()).Err() // which has no reply
	eventually(t, "the primary is down", func() bool { return errOf(s.Ready(t.Context())) != nil })
	for range 10 {
		wantError(t, "Ready", errOf(s.Ready(t.Context())), ErrUnavailable)
	}
}

func TestReadyDoesWithoutTheSettingsThatItMayNotRead(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{Args: []string{"--maxmemory-policy", "allkeys-lru"}})
	admin := redistest.PlainClient(t, server.URL())
	must(admin.Do(t.Context(), "ACL", "SETUSER", "limited", "on", ">pw", "~*", "+@all", "-info").Result())(t)
	s := openStore(t, Config{}, "unix://limited:pw@"+redistest.SocketOf(server), nil)
	wantEqual(t, "the warnings", must(s.Ready(t.Context()))(t), nil)
	wrong := openStore(t, Config{}, "unix://limited:wrong@"+redistest.SocketOf(server), nil)
	wantError(t, "with a wrong password", errOf(wrong.Ready(t.Context())), ErrUnavailable)
}

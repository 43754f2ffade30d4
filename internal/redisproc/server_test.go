package redisproc

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// start runs a server until the test ends.
func start(tb testing.TB, cfg Config) *Server {
	tb.Helper()
	s := must(Start(tb.Context(), cfg))(tb)
	tb.Cleanup(func() { s.Stop() })
	return s
}

func stop(tb testing.TB, s *Server) {
	tb.Helper()
	must(0, s.Stop())(tb)
}

// connect returns a client of the server, made from its URL as callers do.
func connect(tb testing.TB, s *Server) *redis.Client {
	tb.Helper()
	opt := must(redis.ParseURL(s.URL()))(tb)
	client := redis.NewClient(opt)
	tb.Cleanup(func() { client.Close() })
	return client
}

func isGone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

func TestServerIsConfiguredAsPromised(t *testing.T) {
	t.Parallel()
	kept := Config{Dir: t.TempDir()}
	always := Config{Dir: t.TempDir(), Fsync: "always"}
	limited := Config{Args: []string{"--maxmemory", "10mb"}}
	for _, tc := range []struct {
		cfg             Config
		parameter, want string
	}{
		{Config{}, "port", "0"},
		{Config{}, "save", ""},
		{Config{}, "appendonly", "no"},
		{Config{}, "maxmemory-policy", "noeviction"},
		{kept, "appendonly", "yes"},
		{kept, "appendfsync", "everysec"},
		{kept, "dir", kept.Dir},
		{always, "appendfsync", "always"},
		{limited, "maxmemory", "10485760"},
	} {
		s := start(t, tc.cfg)
		got, err := connect(t, s).ConfigGet(t.Context(), tc.parameter).Result()
		if err != nil || got[tc.parameter] != tc.want {
			t.Errorf("%+v: %s = %q, %v; want %q", tc.cfg, tc.parameter, got[tc.parameter], err, tc.want)
		}
		stop(t, s)
	}
}

func TestServerRunsInAProcessGroupOfItsOwn(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	if group, err := syscall.Getpgid(s.PID()); err != nil || group != s.PID() {
		t.Errorf("process group %d, %v; want %d", group, err, s.PID())
	}
}

func TestSocketIsReachableByItsOwnerAlone(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	info := must(os.Stat(filepath.Dir(s.socket())))(t)
	if mode := info.Mode().Perm(); mode != 0o700 {
		t.Errorf("directory of the socket has mode %o, want 700", mode)
	}
}

func TestSocketPathStaysShort(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	must(0, os.Mkdir(long, 0o700))(t)
	t.Setenv("TMPDIR", long)
	start(t, Config{})
}

func TestDataOutlivesARestart(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: filepath.Join(t.TempDir(), "new", "data")}
	first := start(t, cfg)
	must(0, connect(t, first).Set(t.Context(), "k", "v", 0).Err())(t)
	stop(t, first)

	second := start(t, cfg)
	if got, err := connect(t, second).Get(t.Context(), "k").Result(); got != "v" {
		t.Errorf("after a restart GET = %q, %v; want v", got, err)
	}
}

func TestStartReturnsWhileDataIsLoading(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: t.TempDir()}
	first := start(t, cfg)
	// Redis looks for clients after every 1024 commands that it loads.
	must(connect(t, first).Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for range 20 * 1024 {
			pipe.Incr(t.Context(), "n")
		}
		return nil
	}))(t)
	stop(t, first)

	cfg.Args = []string{"--key-load-delay", "200"} // µs: 4 s or more in all
	second := start(t, cfg)
	err := connect(t, second).Get(t.Context(), "n").Err()
	if err == nil || !strings.HasPrefix(err.Error(), "LOADING") {
		t.Errorf("GET after Start: %v; want LOADING", err)
	}
	stop(t, second)
}

func TestStartRefusesADirectoryInUse(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: t.TempDir()}
	first := start(t, cfg)
	_, err := Start(t.Context(), cfg)
	if !errors.Is(err, ErrDirInUse) {
		t.Fatalf("second Start: %v; want ErrDirInUse", err)
	}
	wantParts(t, err.Error(), cfg.Dir, "stop the other one", "choose another")
	stop(t, first)
	start(t, cfg)
}

func TestStartSaysWhyTheServerEnded(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	cfg := Config{Dir: t.TempDir(), Args: []string{"--maxmemory", "plenty"}}
	_, err := Start(t.Context(), cfg)
	if err == nil {
		t.Fatal("Start succeeded with a senseless argument")
	}
	wantParts(t, err.Error(), "exit status 1", "maxmemory", "plenty")
	wantEmpty(t, temp)
	start(t, Config{Dir: cfg.Dir}) // the lock is free again
}

func TestStartEndsWithItsContext(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// A socket that is never read: the server runs, but never replies.
	elsewhere := filepath.Join(t.TempDir(), "s")
	cfg := Config{Dir: t.TempDir(), Args: []string{"--unixsocket", elsewhere}}
	if _, err := Start(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Fatalf("Start: %v; want context.Canceled", err)
	}
	wantEmpty(t, temp)
	start(t, Config{Dir: cfg.Dir}) // the lock is free: the process has ended
}

func wantEmpty(tb testing.TB, dir string) {
	tb.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		tb.Errorf("%s holds %v, %v; want nothing", dir, entries, err)
	}
}

func TestStopIsSafeFromSeveralGoroutines(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			select {
			case <-s.Done():
			default:
				t.Error("Stop returned before the process had ended")
			}
		})
	}
	wg.Wait()
}

func TestStopKillsAServerThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	must(0, syscall.Kill(s.PID(), syscall.SIGSTOP))(t)
	err := s.stopWithin(10 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("stop: %v; want an error that says killed", err)
	}
	if again := s.Stop(); again == nil || again.Error() != err.Error() {
		t.Errorf("second stop: %v; want %v", again, err)
	}
}

func TestDoneReportsACrash(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	must(0, syscall.Kill(s.PID(), syscall.SIGKILL))(t)
	<-s.Done()
	if !isGone(s.temp) {
		t.Errorf("%s is still there", s.temp)
	}
	if err := s.Stop(); err == nil {
		t.Error("Stop says that a killed server shut down in order")
	}
}

func TestLogReceivesWhatTheServerPrints(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	stop(t, start(t, Config{Log: &log}))
	wantParts(t, log.String(), "accept connections at", "bye bye")
}

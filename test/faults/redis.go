package faults

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
)

// Redis is a redis-server of one test. After a restart it has the same address and the same data.
type Redis struct {
	Addr   string           // host:port
	Config redisproc.Config // of the next Start

	t      testing.TB
	server *redisproc.Server
}

// StartRedis runs a redis-server until the test ends. It keeps an append-only file in a temporary directory unless the
// Config names a directory.
func StartRedis(t testing.TB, cfg redisproc.Config) *Redis {
	t.Helper()
	port, err := redisproc.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Port = port
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	r := &Redis{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Config: cfg, t: t}
	t.Cleanup(func() { r.Kill() })
	r.Start()
	return r
}

// URL returns the address as the service takes it.
func (r *Redis) URL() string { return "redis://" + r.Addr }

// PID returns the id of the running process.
func (r *Redis) PID() int { return r.server.PID() }

// Start restarts the server after it has ended.
func (r *Redis) Start() {
	r.t.Helper()
	server, err := redisproc.Start(context.Background(), r.Config)
	if err != nil {
		r.t.Fatal(err)
	}
	r.server = server
}

// Kill ends the process with SIGKILL, so Redis saves nothing, and returns when it has ended.
func (r *Redis) Kill() {
	if r.server == nil {
		return
	}
	r.Signal(syscall.SIGKILL)
	<-r.server.Done()
}

// Ended is closed when the process has ended.
func (r *Redis) Ended() <-chan struct{} { return r.server.Done() }

// Freeze stops the process with SIGSTOP: its connections stay open, and nothing answers.
func (r *Redis) Freeze() { r.Signal(syscall.SIGSTOP) }

// Thaw resumes a frozen process.
func (r *Redis) Thaw() { r.Signal(syscall.SIGCONT) }

// Signal sends a signal to the process, unless it has ended.
func (r *Redis) Signal(s syscall.Signal) {
	select {
	case <-r.server.Done():
	default:
		_ = syscall.Kill(r.server.PID(), s) // fails if the process has ended meanwhile
	}
}

// AppendOnlyFile returns the path of the file that the server appends to. It stays the same, because the tests write too
// little for Redis to rewrite it.
func (r *Redis) AppendOnlyFile() string {
	return filepath.Join(r.Config.Dir, "appendonlydir", "appendonly.aof.1.incr.aof")
}

// Client returns a client to inspect and configure the server. It is closed when the test ends.
func (r *Redis) Client() *redis.Client { return clientOf(r.t, r.Addr) }

func clientOf(t testing.TB, address string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, DisableIdentity: true, MaxRetries: -1, PoolSize: 1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

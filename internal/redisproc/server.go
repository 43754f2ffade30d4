package redisproc

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// stopLimit bounds an orderly shutdown. Then Stop kills the server.
const stopLimit = 10 * time.Second

// Config says how a server runs. The zero value is a server without persistence or output.
type Config struct {
	// Dir is where the data lives: an append-only file, loaded again by the next
	// Start. It is created with mode 0700 if missing. Empty: nothing is persisted.
	Dir string

	// Fsync is Redis' appendfsync, for a server with a Dir: "always", "everysec"
	// or "no". Empty means "everysec".
	Fsync string

	// Port is where the server listens on 127.0.0.1 as well as on its socket; see
	// FreePort. 0: on its socket alone.
	Port int

	// ReplicaOf is the host:port of the primary that the server follows. Empty: it
	// is a primary itself.
	ReplicaOf string

	// Env is added to the environment of the process, such as "LD_PRELOAD=/x.so".
	Env []string

	// Args are further arguments of redis-server, such as "--maxmemory", "10mb".
	// They come last, and so override what the package sets.
	Args []string

	// Log receives what the server prints, from one goroutine, in pieces that need
	// not end with a line. Its errors are ignored. Nil discards.
	Log io.Writer

	// sentinel makes it a sentinel: what is in the file that it starts with, and
	// writes on. It then holds no data.
	sentinel string
}

// Server is a running redis-server process. Its methods may be called from
// several goroutines.
type Server struct {
	cmd    *exec.Cmd
	temp   string // a directory of the server's own, with its socket
	output *tail
	done   chan struct{} // closed after cmd has been waited for

	stop      sync.Once
	removeErr error // of temp; set before done is closed
}

// Start runs a redis-server and returns once it replies. It may still be loading
// its data: commands then fail with LOADING.
//
// The context bounds Start alone, not the life of the server; Start gives up
// after 3 s for the data directory and 10 s for the reply in any case. It returns ErrNotInstalled without a redis-server on
// the PATH, and an error that wraps ErrDirInUse when another server uses
// cfg.Dir. If the process ends before it replies, the error holds the last
// lines it printed. On an error, nothing is left running.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	temp, err := makeTempDir()
	if err != nil {
		return nil, fmt.Errorf("redisproc: directory for the socket: %w", err)
	}
	s := &Server{temp: temp, output: &tail{log: cfg.Log}, done: make(chan struct{})}
	if err := s.launch(ctx, path, cfg); err != nil {
		os.RemoveAll(temp)
		return nil, err
	}
	if err := s.waitUntilReady(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// URL returns the server's address for redis.ParseURL: unix:///path/to/redis.sock.
func (s *Server) URL() string {
	u := url.URL{Scheme: "unix", Path: s.socket()}
	return u.String()
}

// PID returns the id of the server's process. It may name another process, or
// none, once Done is closed.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended, for any
// reason, and its temporary directory is gone. Stop then returns how it ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop ends the server with SIGTERM, after which Redis writes its buffers, and
// with SIGKILL if that takes more than 10 s. It returns when the
// process has ended and its temporary directory is gone.
//
// Every call returns the same error, which says that the server did not shut down
// in order, now or earlier by itself.
func (s *Server) Stop() error { return s.stopWithin(stopLimit) }

func (s *Server) stopWithin(limit time.Duration) error {
	s.stop.Do(func() {
		// Signals fail only when the process has ended already.
		s.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.done:
		case <-time.After(limit):
			s.cmd.Process.Kill()
		}
	})
	<-s.done
	if !s.cmd.ProcessState.Success() {
		return fmt.Errorf("redisproc: redis-server did not shut down in order: %v%s", s.cmd.ProcessState, s.output)
	}
	return s.removeErr
}

func (s *Server) socket() string { return filepath.Join(s.temp, "redis.sock") }

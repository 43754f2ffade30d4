package redisproc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// A socket path has at most 103 bytes on macOS, 107 on Linux, and
	// "/redisproc-4294967295/redis.sock" takes 32 of them.
	longestTempRoot = 103 - 32

	// outputLimit is how long output is read after the process has ended. Only a
	// process that Redis forked to rewrite its append-only file holds it open.
	outputLimit = time.Second
)

// makeTempDir makes a directory with mode 0700 and a path short enough to hold a socket.
func makeTempDir() (string, error) {
	root := os.TempDir()
	if len(root) > longestTempRoot {
		root = "/tmp"
	}
	return os.MkdirTemp(root, "redisproc-")
}

// launch starts the process, and the goroutine that waits for its end.
func (s *Server) launch(ctx context.Context, path string, cfg Config) error {
	args := arguments(cfg, s.socket())
	if cfg.sentinel != "" {
		file := filepath.Join(s.temp, "sentinel.conf")
		if err := os.WriteFile(file, []byte(cfg.sentinel), 0o600); err != nil {
			return fmt.Errorf("redisproc: file of a sentinel: %w", err)
		}
		args = append([]string{file, "--sentinel"}, args...)
	}
	s.cmd = exec.Command(path, args...)
	s.cmd.Dir = s.temp
	if len(cfg.Env) > 0 {
		s.cmd.Env = append(os.Environ(), cfg.Env...)
	}
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	s.cmd.WaitDelay = outputLimit
	// In a process group of its own, the server does not get the Ctrl-C meant for
	// its parent, which still needs it while it drains.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(s.cmd.SysProcAttr)

	if cfg.Dir != "" {
		lock, err := lockDir(ctx, cfg.Dir)
		if err != nil {
			return err
		}
		defer lock.Close() // from here on, the child alone holds the lock
		if err := cutTornTransaction(cfg.Dir); err != nil {
			return err
		}
		s.cmd.Dir = cfg.Dir
		s.cmd.ExtraFiles = []*os.File{lock}
	}

	started := make(chan error)
	go s.run(started)
	return <-started
}

// run starts the process and stays until it has ended. The parent of a Linux
// process is, for its death signal, the thread that forked it: without the
// locked thread the server would end whenever the Go runtime drops that thread
// (https://go.dev/issue/27505).
func (s *Server) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	if err := s.cmd.Start(); err != nil {
		started <- fmt.Errorf("redisproc: %w", err)
		return
	}
	started <- nil
	s.cmd.Wait() // what it returns, cmd.ProcessState says too
	s.removeErr = os.RemoveAll(s.temp)
	close(s.done)
}

// arguments returns the command line of a server that listens on the socket, and
// on a port if it has one, and whose working directory holds its data.
func arguments(cfg Config, socket string) []string {
	args := []string{
		"--port", strconv.Itoa(cfg.Port),
		"--bind", loopback,
		"--unixsocket", socket,
		"--daemonize", "no",
		"--save", "",
		"--maxmemory-policy", "noeviction",
	}
	if cfg.Dir != "" {
		fsync := cfg.Fsync
		if fsync == "" {
			fsync = "everysec"
		}
		args = append(args, "--appendonly", "yes", "--appendfsync", fsync)
	}
	if cfg.Port != 0 {
		// By default a replica is kept waiting for others that may come, and a primary
		// that is asked to stop for replicas that lag; both in seconds.
		args = append(args, "--repl-diskless-sync-delay", "0", "--shutdown-timeout", "0")
	}
	if host, port, found := strings.Cut(cfg.ReplicaOf, ":"); found {
		args = append(args, "--replicaof", host, port)
	}
	return append(args, cfg.Args...)
}

package faults

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/test/serviceproc"
)

const (
	// graceTime is the service's default for finishing requests after SIGTERM.
	graceTime = 10 * time.Second
	// ExitLimit is how long an instance may take to end after SIGTERM: its grace time and a little more.
	ExitLimit = graceTime + 2*time.Second
)

// Instance is a running process of the service.
type Instance struct {
	*serviceproc.Service
	started time.Time
}

// StartInstance runs the service on the Redis at the URL until the test ends, and returns when it listens. The arguments
// are further flags. Without --listen among them, the instance takes a free port.
func StartInstance(t testing.TB, redisURL string, args ...string) *Instance {
	t.Helper()
	port, err := redisproc.FreePort() // outside the ephemeral range, so no connection takes it during a restart
	if err != nil {
		t.Fatal(err)
	}
	i := &Instance{started: time.Now()}
	i.Service, err = serviceproc.LaunchWith(t.TempDir(), []string{
		"REMIT_REDIS_URL=" + redisURL, "REMIT_LISTEN=127.0.0.1:" + strconv.Itoa(port), "REMIT_RATE_LIMITS=off",
		"GORACE=halt_on_error=1", // behaviour after a race proves nothing
		"GOMEMLIMIT=900MiB",      // as in deploy/kubernetes
	}, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		i.Kill()
		if strings.Contains(i.Output(), "DATA RACE") || strings.Contains(i.Output(), "panic:") {
			t.Errorf("the instance at %s printed:\n%s", i.URL, i.Output())
		}
	})
	return i
}

// Listen returns the address that the instance listens on, to start another in its place: "--listen", i.Listen().
func (i *Instance) Listen() string { return strings.TrimPrefix(i.URL, "http://") }

// Terminate sends SIGTERM and waits for the process to end. It is an error if that takes longer than ExitLimit, or if the
// process does not exit with 0.
func (i *Instance) Terminate() error {
	if err := i.endBy(syscall.SIGTERM); err != nil {
		return err
	}
	if !i.State().Success() {
		return fmt.Errorf("it ended with %v:\n%s", i.State(), i.Output())
	}
	return nil
}

// Goroutines ends the process with SIGQUIT, at which the Go runtime prints the stack of every goroutine, and returns the
// stacks. It leaves out idle workers of the HTTP server, which wait for the next connection.
func (i *Instance) Goroutines() ([]string, error) {
	if err := i.endBy(syscall.SIGQUIT); err != nil {
		return nil, err
	}
	return goroutinesIn(i.Stderr()), nil
}

func (i *Instance) endBy(s syscall.Signal) error {
	if err := i.Signal(s); err != nil {
		return err
	}
	select {
	case <-i.Done():
		return nil
	case <-time.After(ExitLimit):
		return fmt.Errorf("it had not ended %v after %v", ExitLimit, s)
	}
}

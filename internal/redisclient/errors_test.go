package redisclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/test/redistest"
)

// serverError is an error that Redis answers.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

func TestStoreErrorsDistinguishUnavailableFromOutcomeUnknown(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, test := range []struct {
		name  string
		cause error
		write error
	}{
		{"a dial that was refused", refused, ErrUnavailable},
		{"a dial that was refused, wrapped", fmt.Errorf("node 1: %w", refused), ErrUnavailable},
		{"a dial that timed out", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, ErrUnavailable},
		{"no connection became free", redis.ErrPoolTimeout, ErrUnavailable},
		{"no connection may be opened", redis.ErrPoolExhausted, ErrUnavailable},
		{"the client is closed", redis.ErrClosed, ErrUnavailable},
		{"LOADING", serverError("LOADING Redis is loading the dataset in memory"), ErrUnavailable},
		{"READONLY", serverError("READONLY You can't write against a read only replica."), ErrUnavailable},
		{"OOM", serverError("OOM command not allowed when used memory > 'maxmemory'."), ErrUnavailable},
		{"MISCONF", serverError("MISCONF Errors writing to the AOF file: No space left on device"), ErrUnavailable},
		{"CLUSTERDOWN", serverError("CLUSTERDOWN Hash slot not served"), ErrUnavailable},
		{"MASTERDOWN", serverError("MASTERDOWN Link with MASTER is down"), ErrUnavailable},
		{"NOREPLICAS", serverError("NOREPLICAS Not enough good replicas to write."), ErrUnavailable},
		{"TRYAGAIN", serverError("TRYAGAIN Multiple keys request during rehashing of slot"), ErrUnavailable},
		{"BUSY", serverError("BUSY Redis is busy running a script."), ErrUnavailable},
		{"NOAUTH", serverError("NOAUTH Authentication required."), ErrUnavailable},
		{"WRONGPASS", serverError("WRONGPASS invalid username-password pair"), ErrUnavailable},
		{"NOPERM", serverError("NOPERM this user has no permissions to run the 'evalsha' command"), ErrOutcomeUnknown}, // it can come after a write
		{"MOVED", serverError("MOVED 3999 127.0.0.1:6381"), ErrUnavailable},
		{"ASK", serverError("ASK 3999 127.0.0.1:6381"), ErrUnavailable},
		{"too many clients", serverError("ERR max number of clients reached"), ErrUnavailable},
		{"LOADING, wrapped", fmt.Errorf("node 1: %w", serverError("LOADING")), ErrUnavailable},

		{"a connection that ended", io.EOF, ErrOutcomeUnknown},
		{"a connection that ended within the reply", io.ErrUnexpectedEOF, ErrOutcomeUnknown},
		{"a connection that was reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, ErrOutcomeUnknown},
		{"a reply that did not come", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, ErrOutcomeUnknown},
		{"a request that was not taken", &net.OpError{Op: "write", Err: os.ErrDeadlineExceeded}, ErrOutcomeUnknown},
		{"the caller's time is up", context.DeadlineExceeded, ErrOutcomeUnknown},
		{"the caller has gone", context.Canceled, ErrOutcomeUnknown},
		{"an error within a script", serverError("ERR user_script:12: attempt to compare nil with number"), ErrOutcomeUnknown},
		{"WRONGTYPE", serverError("WRONGTYPE Operation against a key holding the wrong kind of value"), ErrOutcomeUnknown},
		{"text that only looks like a refusal", errors.New("LOADING"), ErrOutcomeUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for a, want := range map[Access]error{Writes: test.write, Reads: ErrUnavailable} {
				err := classify(test.cause, a)
				if !errors.Is(err, want) || !errors.Is(err, test.cause) {
					t.Errorf("%v, want %v with the cause", err, want)
				}
				if errors.Is(err, ErrUnavailable) && errors.Is(err, ErrOutcomeUnknown) {
					t.Errorf("%v is both", err)
				}
			}
		})
	}
	if classify(nil, Reads) != nil || classify(nil, Writes) != nil {
		t.Error("no trouble is an error")
	}
}

func TestOnlyTransientFailuresAreRetried(t *testing.T) {
	t.Parallel()
	c := openClient(t, Config{}, "redis://127.0.0.1:1")
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"a dial that was refused", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{"a slot that is moving", serverError("TRYAGAIN Multiple keys request during rehashing of slot"), true},
		{"a slot without an owner", serverError("MOVED 3999 127.0.0.1:6381"), true},
		{"a slot of which all keys have moved", serverError("ASK 3999 127.0.0.1:6381"), true},
		{"a cluster that is down", serverError("CLUSTERDOWN The cluster is down"), false},
		{"READONLY", serverError("READONLY You can't write against a read only replica."), false},
		{"a dial that used up the caller's time", &net.OpError{Op: "dial", Err: context.DeadlineExceeded}, false},
		{"no connection became free", redis.ErrPoolTimeout, false},
		{"LOADING", serverError("LOADING Redis is loading the dataset in memory"), false},
		{"OOM", serverError("OOM command not allowed when used memory > 'maxmemory'."), false},
		{"a connection that ended", io.EOF, false},
		{"a reply that did not come", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, false},
	} {
		if got := c.goesAgain(t.Context(), test.err, 1, time.Now()); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
		if c.goesAgain(t.Context(), test.err, maxAttempts, time.Now().Add(-movingTime)) {
			t.Errorf("%s: for ever", test.name)
		}
	}
}

// When Redis hangs, calls that wait are shed: they were never sent, and are known not to have happened.
func TestCallsThatWaitForAStalledRedisAreShedUnsent(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{})
	c := openClient(t, Config{}, server.URL())
	n := newCounter(c)
	keepConnections(t, c, unsharedCalls)
	resume := redistest.Suspend(t, server)
	const calls = unsharedCalls + 2*maxBatch // the second pipeline never sets out
	outcomes := make([]error, calls)
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() { _, outcomes[i] = n.add(context.Background(), Flow{}) })
	}
	redistest.WaitAtMost(t, 2*CallTimeout, &wg)
	resume()
	var shed, unknown int64
	for _, err := range outcomes {
		switch {
		case errors.Is(err, ErrOutcomeUnknown):
			unknown++
		case errors.Is(err, ErrUnavailable): // it had waited too long, or its pipeline had no connection yet
			shed++
		default:
			t.Errorf("a write: %v", err)
		}
	}
	if unknown > unsharedCalls+maxBatch || shed == 0 || unknown+shed != calls {
		t.Errorf("%d were sent and %d shed, of %d", unknown, shed, calls)
	}
	eventually(t, "it works again", func() bool { // another call may be the one that tries
		_, err := n.read(t.Context())
		return err == nil
	})
	if sum := must(n.read(t.Context()))(t); sum > unknown {
		t.Errorf("%d writes happened, of %d that were sent", sum, unknown)
	}
}

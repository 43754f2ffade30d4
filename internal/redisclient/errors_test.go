package redisclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

func TestStoreErrorsDistinguishUnavailableFromOutcomeUnknown(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for want, causes := range map[error][]error{
		ErrUnavailable: {
			refused, fmt.Errorf("node 1: %w", refused), &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded},
			redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed, fmt.Errorf("node 1: %w", serverError("LOADING")),
			serverError("LOADING Redis is loading the dataset in memory"), serverError("READONLY You can't write against a read only replica."),
			serverError("OOM command not allowed when used memory > 'maxmemory'."), serverError("MISCONF Errors writing to the AOF file"),
			serverError("CLUSTERDOWN Hash slot not served"), serverError("MASTERDOWN Link with MASTER is down"),
			serverError("NOREPLICAS Not enough good replicas to write."), serverError("TRYAGAIN Multiple keys request during rehashing of slot"),
			serverError("BUSY Redis is busy running a script."), serverError("NOAUTH Authentication required."),
			serverError("WRONGPASS invalid username-password pair"), serverError("MOVED 3999 127.0.0.1:6381"),
			serverError("ASK 3999 127.0.0.1:6381"), serverError("ERR max number of clients reached"),
		},
		ErrOutcomeUnknown: {
			io.EOF, io.ErrUnexpectedEOF, // within the reply
			&net.OpError{Op: "read", Err: syscall.ECONNRESET}, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
			&net.OpError{Op: "write", Err: os.ErrDeadlineExceeded}, context.DeadlineExceeded, context.Canceled,
			serverError("ERR user_script:12: attempt to compare nil with number"),
			serverError("WRONGTYPE Operation against a key holding the wrong kind of value"),
			serverError("NOPERM this user has no permissions to run the 'evalsha' command"), // it can come after a write
			errors.New("LOADING"), // text that only looks like a refusal
		},
	} {
		for _, cause := range causes {
			for a, want := range map[Access]error{Writes: want, Reads: ErrUnavailable} {
				err := classify(cause, a)
				if !errors.Is(err, want) || !errors.Is(err, cause) {
					t.Errorf("%v, want %v with the cause %v", err, want, cause)
				}
				if errors.Is(err, ErrUnavailable) && errors.Is(err, ErrOutcomeUnknown) {
					t.Errorf("%v is both", err)
				}
			}
		}
	}
	if classify(nil, Reads) != nil || classify(nil, Writes) != nil {
		t.Error("no trouble is an error")
	}
}

func TestOnlyTransientFailuresAreRetried(t *testing.T) {
	t.Parallel()
	c := openClient(t, Config{}, "redis://127.0.0.1:1")
	for want, failures := range map[bool][]error{
		true: {
			&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
			serverError("TRYAGAIN Multiple keys request during rehashing of slot"), // a slot that is moving
			serverError("MOVED 3999 127.0.0.1:6381"),                               // a slot without an owner
			serverError("ASK 3999 127.0.0.1:6381"),                                 // a slot of which all keys have moved
		},
		false: {
			&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, // it used up the caller's time
			serverError("CLUSTERDOWN The cluster is down"), serverError("READONLY You can't write against a read only replica."),
			serverError("LOADING Redis is loading the dataset in memory"), serverError("OOM command not allowed when used memory > 'maxmemory'."),
			redis.ErrPoolTimeout, io.EOF, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		},
	} {
		for _, err := range failures {
			wantEqual(t, err.Error(), c.goesAgain(t.Context(), err, 1, time.Now()), want)
			if c.goesAgain(t.Context(), err, maxAttempts, time.Now().Add(-movingTime)) {
				t.Errorf("%v: for ever", err)
			}
		}
	}
}

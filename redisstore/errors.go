package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Trouble with Redis. Both wrap the cause, for the log.
var (
	// ErrUnavailable: Redis cannot be reached or cannot write now. Nothing was changed.
	ErrUnavailable = errors.New("store unavailable")
	// ErrOutcomeUnknown: the answer to a write was lost. It may have happened.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// access tells a lost read, which can be asked again, from a lost write, which may have happened.
type access bool

const (
	reads  access = false
	writes access = true
)

// classify turns an error of the client into ErrUnavailable or ErrOutcomeUnknown.
func classify(err error, a access) error {
	switch {
	case err == nil:
		return nil
	case a == reads, neverRan(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
}

// neverRan says whether the error shows that the command was not carried out: it was never sent, or Redis refused it
// before its first write. Scripts validate before they write, so a refused write is always their first.
func neverRan(err error) bool {
	var opErr *net.OpError
	if errors.As(err, &opErr) && opErr.Op == "dial" {
		return true
	}
	for _, unsent := range []error{
		redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed, errLaneFull, errLaneLate, errLeftLane,
	} {
		if errors.Is(err, unsent) {
			return true
		}
	}
	return refusedByServer(err)
}

// The first words of the errors with which Redis 7 refuses a command or a script's write in the states it can be in.
var serverRefusals = []string{
	"LOADING", "READONLY", "OOM", "MISCONF", "CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS", "TRYAGAIN", "BUSY", "NOAUTH",
	"WRONGPASS", "MOVED", "ASK", "CROSSSLOT", "ERR max number of clients",
}

// The first words of those with which it refuses every write, and goes on reading.
var writeRefusals = []string{"OOM", "MISCONF", "READONLY", "NOREPLICAS"}

func refusedByServer(err error) bool { return answeredWith(err, serverRefusals) }

// refusedWrite says whether Redis refused to write, in a state in which it can be read. What was to be read, and written only
// by the way, is read without that then.
func refusedWrite(err error) bool { return answeredWith(err, writeRefusals) }

// answeredWith says whether Redis answered with an error that begins so.
func answeredWith(err error, beginnings []string) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, beginning := range beginnings {
		if strings.HasPrefix(reply.Error(), beginning) {
			return true
		}
	}
	return false
}

// recoverTo hands on a panic of a goroutine of the store's own as an error, deferred there: it would end the process.
func recoverTo(handOn func(error)) {
	if cause := recover(); cause != nil {
		handOn(fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
	}
}

// passing says whether a command that never ran may be sent again at once: the connection was refused, or a slot is
// moving.
func passing(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var opErr *net.OpError
	return errors.As(err, &opErr) && opErr.Op == "dial" || redis.HasErrorPrefix(err, "TRYAGAIN")
}

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
	// ErrOverloaded is the ErrUnavailable of a call that was turned away at once, unsent: too many wait for Redis, or it
	// has stopped answering.
	ErrOverloaded = fmt.Errorf("%w now", ErrUnavailable)
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
	case errors.Is(err, ErrOverloaded): // as it is: it must cost little
		return err
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
		redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed, ErrOverloaded, errLaneLate, errLeftLane,
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

func refusedByServer(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, refusal := range serverRefusals {
		if strings.HasPrefix(reply.Error(), refusal) {
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

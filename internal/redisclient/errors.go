package redisclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The two failures of a call to Redis. Errors of both wrap their cause, for the log.
var (
	// ErrUnavailable: Redis cannot be reached or cannot write now. Nothing was changed.
	ErrUnavailable = errors.New("store unavailable")
	// ErrOverloaded is the ErrUnavailable of a call that was shed at once, unsent: too many calls wait for Redis, or it has
	// stopped answering.
	ErrOverloaded = fmt.Errorf("%w now", ErrUnavailable)
	// ErrOutcomeUnknown: the answer to a write was lost. It may have happened.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// Why a command was never sent.
var (
	errQueueFull    = fmt.Errorf("%w: too many commands wait for Redis", ErrOverloaded)
	errStalled      = fmt.Errorf("%w: Redis has not answered for a while", ErrOverloaded)
	errTooLate      = errors.New("the command had waited too long when its turn came")
	errCallerLeft   = errors.New("the caller left before the command's turn came")
	errNoServer     = errors.New("no server is known to have the key")
	errLeftInFlight = errors.New("the caller left while the command was in flight") // so it may be sent yet
)

var errUnconfirmed = errors.New("no replica has confirmed the write")

func isUnconfirmed(err error) bool { return errors.Is(err, errUnconfirmed) }

// Access distinguishes a lost read, which can be repeated, from a lost write, which may have happened.
type Access int

// What a script or a command does.
const (
	Reads      Access = iota
	Writes            // what its answer acknowledges
	BestEffort        // writes data that the next caller would write again
)

// classify turns an error of the client into ErrUnavailable or ErrOutcomeUnknown.
func classify(err error, a Access) error {
	switch {
	case err == nil:
		return nil
	case isShed(err): // as it is: it must cost little
		return err
	case a == Reads, neverRan(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
}

func isShed(err error) bool { return errors.Is(err, ErrOverloaded) }

// isReply says whether an error is an answer of Redis, and not one of the connection to it.
func isReply(err error) bool {
	_, is := errors.AsType[redis.Error](err)
	return is
}

// isDial says whether no connection could be made.
func isDial(err error) bool {
	opErr, is := errors.AsType[*net.OpError](err)
	return is && opErr.Op == "dial"
}

// neverRan says whether the error shows that the command was not carried out: it was never sent, or Redis refused it
// before its first write. Scripts validate before they write, so a refused write is always their first.
func neverRan(err error) bool {
	if isDial(err) {
		return true
	}
	for _, unsent := range []error{
		redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed, ErrOverloaded, errTooLate, errCallerLeft, errNoServer,
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

// The first words of those with which it refuses every write, and goes on reading. READONLY is not among them: what a
// replica can be read for may be out of date, and must not authorise.
var writeRefusals = []string{"OOM", "MISCONF", "NOREPLICAS"}

func refusedByServer(err error) bool { return answeredWith(err, serverRefusals) }

// RefusedWrite says whether Redis refused to write, in a state in which it can be read. A caller that wanted to read, and to
// write only by the way, can read without writing then.
func RefusedWrite(err error) bool { return answeredWith(err, writeRefusals) }

// answeredWith reports whether Redis replied with an error that begins with one of these.
func answeredWith(err error, beginnings []string) bool {
	reply, is := errors.AsType[redis.Error](err)
	return is && slices.ContainsFunc(beginnings, func(beginning string) bool { return strings.HasPrefix(reply.Error(), beginning) })
}

// RecoverTo hands on a panic of one of the client's own goroutines as an error: it would end the process. Defer it there.
func RecoverTo(handOn func(error)) {
	if cause := recover(); cause != nil {
		handOn(fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
	}
}

// passing says whether a command that never ran may be sent again at once: the connection was refused.
func passing(err error) bool {
	return isDial(err) && !errors.Is(err, context.DeadlineExceeded)
}

// moving says that a command did not run because its keys' slot is moving to another node of a cluster: some keys are
// here and some there, or the nodes do not agree yet on whose it is.
func moving(err error) bool { return redis.HasErrorPrefix(err, "TRYAGAIN") || movedElsewhere(err) }

// movedElsewhere says that the server did not run the command because it is not the one, or not yet the one, that has the
// keys. Only go-redis knows where to send it then.
func movedElsewhere(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}

// NotReadyError says why Redis cannot be used now, in words without anything secret. It is an ErrUnavailable.
type NotReadyError struct {
	Reason string
	cause  error
}

func (e *NotReadyError) Error() string { return fmt.Sprintf("%s: %v", e.Reason, e.cause) }

// Unwrap returns ErrUnavailable and the cause, for the log.
func (e *NotReadyError) Unwrap() []error { return []error{ErrUnavailable, e.cause} }

// unreachable is the reason when Redis has answered nothing that says one.
const unreachable = "Redis cannot be reached"

// reasons are what the errors mean with which Redis refuses a write, by their beginnings.
var reasons = []struct{ beginning, reason string }{
	{"OOM", "Redis is full: it has reached its maxmemory and refuses writes"},
	{"MISCONF", "Redis cannot save to its disk and refuses writes"},
	{"READONLY", "Redis is a replica and refuses writes"},
	{"NOREPLICAS", "Redis has fewer replicas than min-replicas-to-write and refuses writes"},
	{"LOADING", "Redis is loading its data"},
	{"MASTERDOWN", "Redis is a replica without its primary"},
	{"CLUSTERDOWN", "the Redis Cluster does not serve all of its slots"},
	{"BUSY", "Redis is busy with a script"},
	{"NOAUTH", "Redis does not let the service in"},
	{"WRONGPASS", "Redis does not let the service in"},
	{"NOPERM", "Redis does not let the service in"},
	{"ERR max number of clients", "Redis has as many clients as it may"},
}

// NotReady turns the error of a check into the reason that it stands for. It returns nil for nil.
func (c *Client) NotReady(err error) error {
	if err == nil {
		return nil
	}
	c.Suspect(err)
	for _, known := range reasons {
		if answeredWith(err, []string{known.beginning}) {
			return &NotReadyError{known.reason, err}
		}
	}
	return &NotReadyError{unreachable, err}
}

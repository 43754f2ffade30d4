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
type access int

const (
	reads  access = iota
	writes        // what its answer acknowledges
	tidies        // writes what would follow anyway: whoever comes next would write it again
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

// trouble is classify for an error that this store's client has met.
func (s *Store) trouble(err error, a access) error {
	s.suspect(err)
	return classify(err, a)
}

// suspect looks at an error for what it tells of the servers: that another is the primary now. go-redis looks at the state
// of a cluster again when a node says that it moved, but a node that is gone says nothing, and the state lasts a minute.
func (s *Store) suspect(err error) {
	switch cluster, isCluster := s.client.(*redis.ClusterClient); {
	case err == nil:
	case redis.HasErrorPrefix(err, "READONLY"):
		s.conns.retire()
	case isCluster && !isReply(err) && !errors.Is(err, ErrOverloaded):
		cluster.ReloadState(context.Background()) // soon, and not more often than every 200 ms
	}
}

// isReply tells what Redis has said from what was made of its silence.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// neverRan says whether the error shows that the command was not carried out: it was never sent, or Redis refused it
// before its first write. Scripts validate before they write, so a refused write is always their first.
func neverRan(err error) bool {
	var opErr *net.OpError
	if errors.As(err, &opErr) && opErr.Op == "dial" {
		return true
	}
	for _, unsent := range []error{
		redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed, ErrOverloaded, errLaneLate, errLeftLane, errNoServer,
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

// passing says whether a command that never ran may be sent again at once: the connection was refused.
func passing(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var opErr *net.OpError
	return errors.As(err, &opErr) && opErr.Op == "dial"
}

// moving says that a command did not run because its keys' slot is moving to another node of a cluster: some keys are
// here and some there, or the nodes do not agree yet on whose it is.
func moving(err error) bool { return redis.HasErrorPrefix(err, "TRYAGAIN") || movedElsewhere(err) }

// movedElsewhere says that the server did not run the command because it is not the one, or not yet the one, that has the
// keys. Only go-redis knows where to send it then.
func movedElsewhere(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}

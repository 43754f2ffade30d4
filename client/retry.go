package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

const (
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 5 * time.Second
	// longestWait is how long a Retry-After is honoured by waiting. Beyond it the caller is told instead.
	longestWait = 30 * time.Second
)

// lost is an attempt without an answer.
type lost struct{ error }

func (e *lost) Unwrap() error { return e.error }

// unreadable is an answer that does not follow the contract.
type unreadable struct{ error }

func (e *unreadable) Error() string { return "unreadable answer: " + e.error.Error() }
func (e *unreadable) Unwrap() error { return e.error }

// noToken is the want of an access token to send a call with.
type noToken struct{ error }

func (e *noToken) Error() string { return "no access token: " + e.error.Error() }
func (e *noToken) Unwrap() error { return e.error }

// doubt is the last error of a write of which an attempt may have happened. Its cause may be an ErrUnavailable, which by
// itself would say that nothing did; so it is not unwrapped but asked.
type doubt struct{ cause error }

func (e *doubt) Error() string      { return ErrOutcomeUnknown.Error() + ": " + e.cause.Error() }
func (e *doubt) As(target any) bool { return errors.As(e.cause, target) }
func (e *doubt) Is(target error) bool {
	return target == ErrOutcomeUnknown || target != ErrUnavailable && errors.Is(e.cause, target)
}

// mayRepeat reports whether q may be sent again after err: when it certainly did not happen, or when twice is the same
// as once. Only what may pass by itself is worth it: lost answers, 503 and 429.
func (q call) mayRepeat(err error) bool {
	if p, ok := err.(problemHolder); ok {
		status, code := p.problem().Status, p.problem().Code
		return status == http.StatusTooManyRequests ||
			status == http.StatusServiceUnavailable && (code == codeUnavailable || q.effect != once)
	}
	_, isLost := err.(*lost)
	return isLost && !isDistrusted(err) && (wasNotSent(err) || q.effect != once)
}

// mayHaveHappened reports whether a write that ended in err may have been done.
func mayHaveHappened(err error) bool {
	switch e := err.(type) {
	case problemHolder:
		status := e.problem().Status // below 300: done, though by an answer that is not the service's
		return status < 300 || status >= 500 && !e.problem().Is(ErrUnavailable)
	case *lost:
		return !wasNotSent(err)
	case *unreadable:
		return true
	}
	return false
}

// settles reports whether err, after an attempt in doubt, tells how that came out: it does when the service got as far
// as looking up the key, or would have refused the first attempt too. What stands between, such as an ingress without a
// backend, knows of neither.
func settles(err error) bool {
	p, ok := err.(problemHolder)
	if !ok || p.problem().Code == "" {
		return false
	}
	switch status := p.problem().Status; status {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return status >= 400 && status < 500
	}
}

// wasNotSent reports whether there was not even a connection.
func wasNotSent(err error) bool {
	var op *net.OpError
	return isDistrusted(err) || errors.As(err, &op) && op.Op == "dial"
}

// isDistrusted reports whether the far end could not prove who it is, which no second attempt changes.
func isDistrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate)
}

// pause waits before the attempt after the given one. It returns false, and does not wait, when that would be too long
// for the ctx or for anybody.
func pause(ctx context.Context, attempt int, err error) bool {
	wait := backoff(attempt)
	if p, ok := err.(problemHolder); ok {
		if p.problem().RetryAfter > longestWait {
			return false
		}
		wait += p.problem().RetryAfter
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// backoff is exponential with full jitter: anything up to a bound that doubles, so that many callers spread out.
func backoff(attempt int) time.Duration {
	bound := longestBackoff
	if doublings := attempt - 1; doublings < 6 {
		bound = min(bound, firstBackoff<<doublings)
	}
	return rand.N(bound)
}

// conclude words the error that a caller gets, and says in it what is known about the write.
func conclude(ctx context.Context, q call, inDoubt bool, err error) error {
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w; gave up: %w", err, ended)
	}
	switch {
	case inDoubt:
		err = &doubt{err}
	case isOutage(err) && !errors.Is(err, ErrUnavailable) && !errors.Is(err, context.Canceled):
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return fmt.Errorf("remit: %s %s: %w", q.method, withoutQuery(q.path), err)
}

// isOutage reports whether the service could not be asked, or could not answer.
func isOutage(err error) bool {
	var noAnswer *lost
	var p *Problem
	return errors.As(err, &noAnswer) || errors.As(err, &p) && p.Status == http.StatusServiceUnavailable
}

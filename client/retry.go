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
	// longestWait is the longest Retry-After that is waited for. A longer one is returned to the caller.
	longestWait = 30 * time.Second
)

// lost is an attempt without a response.
type lost struct{ error }

func (e *lost) Unwrap() error { return e.error }

// unreadable is a response that does not follow the API.
type unreadable struct{ error }

func (e *unreadable) Error() string { return "unreadable answer: " + e.error.Error() }
func (e *unreadable) Unwrap() error { return e.error }

// noToken reports that there is no access token to send a call with.
func noToken(err error) error { return fmt.Errorf("no access token: %w", err) }

// doubt is the last error of a write of which an attempt may have taken effect. It does not unwrap its cause, because
// that may be ErrUnavailable, which promises that nothing happened.
type doubt struct{ cause error }

func (e *doubt) Error() string      { return ErrOutcomeUnknown.Error() + ": " + e.cause.Error() }
func (e *doubt) As(target any) bool { return errors.As(e.cause, target) }
func (e *doubt) Is(target error) bool {
	return target == ErrOutcomeUnknown || target != ErrUnavailable && errors.Is(e.cause, target)
}

// isRetryable reports whether to send q again after err: a lost response, 503 or 429, provided that q certainly did not
// take effect or is not unsafe.
func (q call) isRetryable(err error) bool {
	if p, ok := err.(problemHolder); ok {
		status, code := p.problem().Status, p.problem().Code
		return status == http.StatusTooManyRequests ||
			status == http.StatusServiceUnavailable && (code == codeUnavailable || q.semantics != unsafe)
	}
	_, isLost := err.(*lost)
	return isLost && !isDistrusted(err) && (wasNotSent(err) || q.semantics != unsafe)
}

// mayHaveHappened reports whether a write that ended in err may have taken effect.
func mayHaveHappened(err error) bool {
	switch e := err.(type) {
	case problemHolder:
		status := e.problem().Status // below 300: it took effect, but another server responded
		return status < 300 || status >= 500 && !e.problem().Is(ErrUnavailable)
	case *lost:
		return !wasNotSent(err)
	case *unreadable:
		return true
	}
	return false
}

// resolvesDoubt reports whether err, after an attempt in doubt, shows the outcome of that attempt: the service looked up
// the idempotency key, or would have refused the first attempt too. The response of an intermediary, such as an ingress
// without a backend, shows neither.
func resolvesDoubt(err error) bool {
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

// wasNotSent reports whether no connection was made.
func wasNotSent(err error) bool {
	var op *net.OpError
	return isDistrusted(err) || errors.As(err, &op) && op.Op == "dial"
}

// isDistrusted reports whether the server's certificate is not trusted. A retry does not change that.
func isDistrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate)
}

// pause waits before the next attempt. It returns false at once when the wait would outlast the ctx or longestWait.
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
	return sleep(ctx, wait)
}

// backoff is exponential with full jitter: a random duration up to a bound that doubles, so that many callers spread out.
func backoff(attempt int) time.Duration {
	bound := longestBackoff
	if doublings := attempt - 1; doublings < 6 {
		bound = min(bound, firstBackoff<<doublings)
	}
	return rand.N(bound)
}

// conclude returns the error for the caller, which says what is known about the write.
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

// isOutage reports whether the service could not be reached, or responded with 503.
func isOutage(err error) bool {
	var noResponse *lost
	var p *Problem
	return errors.As(err, &noResponse) || errors.As(err, &p) && p.Status == http.StatusServiceUnavailable
}

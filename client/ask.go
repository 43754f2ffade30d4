package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// OnLimit is what a charge or a Begin does when a limit of its session refuses it. The zero value returns the error.
type OnLimit string

// Ask asks the organization for what is missing, with the Reason, waits for the decision and then goes on. It waits as long as the
// ctx lasts, so give it a deadline.
const Ask OnLimit = "ask"

const (
	// requestWait is how long the service holds a read of a pending request back. It may take up to 60 seconds.
	requestWait = 30 * time.Second
	// pollPause is the least time between two reads without a result, because the service may return one at once when too many
	// wait.
	pollPause = time.Second
	// While the service is unavailable, the bound of the pause doubles between these.
	shortestPatience, longestPatience = time.Second, 30 * time.Second
)

// asking is a charge or a Begin that asks on a limit.
type asking struct {
	session *Session
	need    amount
	reason  string
	key     string                 // the caller's own; empty: none
	again   func(key string) error // makes the charge once more
}

// resolve asks for what err says is missing, waits, and makes the charge again, until it succeeds or asking cannot help.
//
// With the caller's own key all further keys follow from it, and the service always answers a key the same. So the whole can be
// repeated, also after a crash: it asks once and charges once.
func (a *asking) resolve(ctx context.Context, err error) error {
	for round := 1; ; round++ {
		limit, missing := a.missing(err)
		if missing.isZero() {
			return err
		}
		request, failed := a.ask(ctx, missing, round)
		over := request.Status == "ended" // the session; the charge then says how
		if failed != nil || request.Status != "approved" && !over {
			return &RequestNotApproved{limit, request, failed}
		}
		err = a.again(a.keyOf("charge", round))
		granted := amount{request.GrantedActions, request.GrantedValue}
		if err == nil || over || !granted.covers(missing) {
			return err
		}
	}
}

// missing returns what the session lacks for the charge: nothing if err is no refusal by a limit that a request can raise.
func (a *asking) missing(err error) (*LimitReached, amount) {
	var limit *LimitReached
	if !errors.As(err, &limit) || limit.Limit != "max_actions" && limit.Limit != "max_value_usd" {
		return nil, amount{}
	}
	return limit, a.need.minus(amount{limit.RemainingActions, limit.RemainingValue}).most(amount{})
}

// ask requests what is missing and waits for the decision.
func (a *asking) ask(ctx context.Context, missing amount, round int) (MoreRequest, error) {
	key := a.keyOf("ask", round)
	if key == "" {
		key = randomKey() // also on a Client without keys: a lost response must not make it ask twice
	}
	var r MoreRequest
	err := patiently(ctx, waitingForDecision, func() (err error) {
		r, err = a.session.RequestMore(ctx, MoreParams{missing.actions, missing.value, a.reason, key})
		return err
	})
	if err != nil {
		return r, err
	}
	decided, err := a.session.AwaitRequest(ctx, r.ID)
	if err != nil {
		return r, err
	}
	return decided, nil
}

// keyOf returns the key of a step; empty: the caller gave none.
func (a *asking) keyOf(step string, round int) string {
	if a.key == "" {
		return ""
	}
	return a.key + "-" + step + "-" + strconv.Itoa(round)
}

// AwaitRequest waits until a request for more is decided or its session ends, also while the service is unavailable, and returns
// it. When the ctx ends first, the error is that of the ctx.
func (s *Session) AwaitRequest(ctx context.Context, id string) (MoreRequest, error) {
	path := withQuery(requestPath(s.id, id), "wait", strconv.Itoa(int(requestWait/time.Second)))
	for {
		begun := time.Now()
		var r MoreRequest
		err := patiently(ctx, waitingForDecision, func() error {
			return s.caller.do(ctx, call{method: http.MethodGet, path: path, wait: requestWait}, &r)
		})
		if err != nil || r.Status != "pending" {
			return r, err
		}
		if !sleep(ctx, pollPause-time.Since(begun)) {
			return r, fmt.Errorf("remit: %s: %w", waitingForDecision, ctx.Err())
		}
	}
}

const waitingForDecision = "waiting for a request for more"

// patiently repeats an idempotent operation until it succeeds, the service refuses it, or the ctx ends. Its error says what was
// waited for.
func patiently(ctx context.Context, what string, operation func() error) error {
	for patience := shortestPatience; ; patience = min(2*patience, longestPatience) {
		err := operation()
		passes := errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrRateLimited)
		if err == nil || !passes && ctx.Err() == nil {
			return err
		}
		if !sleep(ctx, patience/2+rand.N(patience/2)) { // jitter, so that many clients spread out
			return fmt.Errorf("remit: %s: %w", what, ctx.Err())
		}
	}
}

// sleep waits, and reports whether the ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

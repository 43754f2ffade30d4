package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"remit/client"
)

// The fleet acts through the SDK, but the books do not go by what the SDK makes of an answer: they go by what went over
// the wire, and hold the SDK against that too.

// outcome is what the caller may conclude from a reply.
type outcome int

const (
	acknowledged outcome = iota // done, and the service said so
	refused                     // not done, and the service said why
	unknown                     // done or not: no answer, or one that leaves it open
)

// reply is an answer, or the failure to get one.
type reply struct {
	status int // 0: no answer
	body   []byte
	err    error // set when status is 0
}

// outcome takes only 200 and 201 for success and only 4xx for a refusal; all else proves nothing.
func (r reply) outcome() outcome {
	switch {
	case r.status == http.StatusOK, r.status == http.StatusCreated:
		return acknowledged
	case r.status >= 400 && r.status < 500:
		return refused
	}
	return unknown
}

// isTurnedAway reports whether the service said that it did nothing, for now.
func (r reply) isTurnedAway() bool {
	return r.status == http.StatusServiceUnavailable && readProblem(r).Code == codeUnavailable
}

// String describes the reply without the body of a success, which may hold a credential.
func (r reply) String() string {
	switch {
	case r.status == 0:
		return r.err.Error()
	case r.status >= 400:
		return fmt.Sprintf("%d %s", r.status, readProblem(r).Code)
	}
	return strconv.Itoa(r.status)
}

// exchange is one request and what came back.
type exchange struct {
	path        string
	sent        []byte
	reply       reply
	spoilt      bool // its access token had been made invalid on purpose
	began, done time.Time
}

// tape is what the wire saw of one call of the SDK, and how the SDK put it.
type tape struct {
	op   operation
	err  error     // the SDK's
	done time.Time // when the call had returned

	mu        sync.Mutex // an early renewal may go on after the call
	exchanges []exchange
}

type tapeKey struct{}

// withTape is ctx with a tape for one call.
func withTape(ctx context.Context, op operation) (context.Context, *tape) {
	t := &tape{op: op}
	return context.WithValue(ctx, tapeKey{}, t), t
}

// record enters e on the tape of ctx, if it has one.
func record(ctx context.Context, e exchange) {
	if t, ok := ctx.Value(tapeKey{}).(*tape); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.exchanges = append(t.exchanges, e)
	}
}

// getsToken reports whether the exchange was one of a credential for tokens.
func (e exchange) getsToken() bool { return e.path == tokenPath || e.path == refreshPath }

// own are the exchanges of the call itself. Those that got a token for it are not, unless it was all about tokens, nor
// those whose token was spoilt: they could do nothing.
func (t *tape) own() []exchange {
	return t.which(func(e exchange) bool { return !e.spoilt && (t.op.forTokens() || !e.getsToken()) })
}

// renewals are the exchanges that got a token for a call about something else.
func (t *tape) renewals() []exchange {
	return t.which(func(e exchange) bool { return !t.op.forTokens() && e.getsToken() })
}

func (t *tape) which(is func(exchange) bool) []exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []exchange
	for _, e := range t.exchanges {
		if is(e) {
			list = append(list, e)
		}
	}
	return list
}

// last is the last exchange with a path.
func (t *tape) last(path string) (e exchange, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range slices.Backward(t.exchanges) {
		if e.path == path {
			return e, true
		}
	}
	return exchange{}, false
}

// reply is how the call came out: the last answer to it, unless that leaves an earlier attempt in doubt.
func (t *tape) reply() reply {
	list := t.own()
	switch {
	case len(list) == 0 && t.err == nil && t.op.forTokens():
		return reply{status: http.StatusOK} // another call was getting a token for the same agent, and its answer served
	case len(list) == 0 && t.err == nil:
		return reply{err: errors.New("nothing was sent")}
	case len(list) == 0, len(list) > 1 && errors.Is(t.err, client.ErrOutcomeUnknown):
		return reply{err: t.err}
	}
	return list[len(list)-1].reply
}

// sdkOutcome is what a user of the SDK concludes from its error.
func sdkOutcome(err error) outcome {
	var p *client.Problem
	switch {
	case err == nil:
		return acknowledged
	case !errors.Is(err, client.ErrOutcomeUnknown) && errors.As(err, &p) && p.Status < 500:
		return refused
	}
	return unknown
}

// checkTape holds the SDK's word against the wire, and finds access tokens that were refused: the SDK would replace
// them and say nothing.
func checkTape(t *tape) []violation {
	var out []violation
	if r := t.reply(); sdkOutcome(t.err) != r.outcome() {
		out = append(out, found(ruleClient, t.op.String(), "the wire says %s, the SDK: %v", r, t.err))
	}
	for _, e := range t.own() {
		if e.reply.status == http.StatusUnauthorized && !t.op.forTokens() {
			out = append(out, found(ruleToken, t.op.String(), "%s answered %s", e.path, e.reply))
		}
	}
	for _, e := range t.which(func(e exchange) bool { return e.spoilt }) {
		if e.reply.outcome() == acknowledged {
			out = append(out, found(ruleSpoilt, t.op.String(), "%s answered %s", e.path, e.reply))
		}
	}
	return out
}

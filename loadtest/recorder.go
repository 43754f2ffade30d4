package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"remit/client"
)

// The fleet acts through the SDK, but the books do not go by what the SDK makes of an answer: they go by what went over
// the wire, and hold the SDK against that too.

// exchange is one request and what came back.
type exchange struct {
	path        string
	sent        []byte
	reply       reply
	invalidated bool // its access token had been made invalid on purpose
	began, done time.Time
}

// tape is what the wire saw of one call of the SDK, and how the SDK put it.
type recorder struct {
	op   operation
	err  error     // the SDK's
	done time.Time // when the call had returned

	mu        sync.Mutex // an early renewal may go on after the call
	exchanges []exchange
}

type recorderKey struct{}

// withRecorder is ctx with a tape for one call.
func withRecorder(ctx context.Context, op operation) (context.Context, *recorder) {
	t := &recorder{op: op}
	return context.WithValue(ctx, recorderKey{}, t), t
}

// record enters e on the tape of ctx, if it has one.
func record(ctx context.Context, e exchange) {
	if t, ok := ctx.Value(recorderKey{}).(*recorder); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.exchanges = append(t.exchanges, e)
	}
}

// getsToken reports whether the exchange was one of a credential for tokens.
func (e exchange) getsToken() bool { return e.path == tokenPath || e.path == refreshPath }

// own are the exchanges of the call itself. Those that got a token for it are not, unless it was all about tokens, nor
// those whose token was invalidated: they could do nothing.
func (t *recorder) own() []exchange {
	return t.which(func(e exchange) bool { return !e.invalidated && (t.op.forTokens() || !e.getsToken()) })
}

// renewals are the exchanges that got a token for a call about something else.
func (t *recorder) renewals() []exchange {
	return t.which(func(e exchange) bool { return !t.op.forTokens() && e.getsToken() })
}

func (t *recorder) which(is func(exchange) bool) []exchange {
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
func (t *recorder) last(path string) (e exchange, ok bool) {
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
func (t *recorder) reply() reply {
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

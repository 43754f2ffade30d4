package fleet

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"remit/client"
)

// The fleet acts through the SDK, but the checks use the requests and answers on the wire, not what the SDK makes of them.
// They compare the SDK's errors with the wire too.

// exchange is one request and its reply.
type exchange struct {
	path        string
	sent        []byte
	reply       reply
	invalidated bool // its access token was made invalid on purpose
	began, done time.Time
}

// recorder holds the exchanges of one SDK call, and the SDK's result.
type recorder struct {
	op   operation
	err  error     // the SDK's
	done time.Time // when the call returned

	repeats bool // an earlier call got no answer

	mu        sync.Mutex // an early renewal may go on after the call
	exchanges []exchange
}

type recorderKey struct{}

// withRecorder returns ctx with a recorder for one call.
func withRecorder(ctx context.Context, op operation) (context.Context, *recorder) {
	t := &recorder{op: op}
	return context.WithValue(ctx, recorderKey{}, t), t
}

// record adds e to the recorder of ctx, if it has one.
func record(ctx context.Context, e exchange) {
	if t, ok := ctx.Value(recorderKey{}).(*recorder); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.exchanges = append(t.exchanges, e)
	}
}

// getsToken reports whether the exchange requested tokens.
func (e exchange) getsToken() bool { return e.path == tokenPath || e.path == refreshPath }

// own returns the exchanges of the call itself. It leaves out those that fetched a token first, and those with an
// invalidated token, which had no effect.
func (t *recorder) own() []exchange {
	return t.which(func(e exchange) bool { return !e.invalidated && (t.op.forTokens() || !e.getsToken()) })
}

// renewals returns the exchanges that fetched a token for another call.
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

// last returns the last exchange with a path.
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

// reply returns the outcome of the call: its last answer, unless the outcome of an earlier attempt is unknown.
func (t *recorder) reply() reply {
	list := t.own()
	switch {
	case len(list) == 0 && t.err == nil && t.op.forTokens():
		return reply{status: http.StatusOK} // another call fetched a token for the same agent, and this one shared it
	case len(list) == 0 && t.err == nil && t.op.mayBeLocal():
		return reply{status: http.StatusOK} // the lease had enough, or nothing was left to settle
	case len(list) == 0 && t.err == nil:
		return reply{err: errors.New("nothing was sent")}
	case len(list) == 0, len(list) > 1 && errors.Is(t.err, client.ErrOutcomeUnknown):
		return reply{err: t.err}
	}
	return list[len(list)-1].reply
}

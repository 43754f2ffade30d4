// Package metered bounds what an agent spends on language models: its Transport stands before the HTTP client of any SDK that
// speaks the formats of OpenAI (chat completions, responses) or Anthropic (messages).
//
//	session := remit.Agent(agentID, secret).Session(sessionID)
//	table, err := prices.ReadFile("prices.json")
//	if err != nil {
//		return err
//	}
//	model := &http.Client{Transport: &metered.Transport{Session: session, Prices: table}}
//
// Before a call it holds the most that the call can cost; after it, it commits what the usage in the answer says. Answers pass
// through as they come, streamed or not. What is in doubt counts as spent:
//
//	what happened                                        the session's usage
//	the answer or the stream ended, with usage           its cost is committed
//	an HTTP error, or the request was not sent           rolled back
//	the answer ended without usage                       the hold is committed; *UsageMissing
//	a stream was cancelled, cut, or failed midway        the most that it can have cost so far is committed: all output, if it can reason
//	another call was sent and not answered whole         the hold is committed
//	the process ended                                    the hold is spent when it expires
package metered

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"remit/client"
	"remit/client/prices"
	"remit/client/wire"
)

const (
	defaultActionType = "llm.call"
	defaultExpiry     = 10 * time.Minute
	// settleLimit bounds the settlement of a call, which continues when the call's context ends.
	settleLimit = 10 * time.Second
	// beginLimit bounds how long a hold is tried for.
	beginLimit = 30 * time.Second
)

// Transport is an http.RoundTripper that holds the most that a call can cost before it sends it, and settles when the call has
// ended. It meters every POST to a path that ends in /chat/completions, /responses or /messages. GET, HEAD, OPTIONS and DELETE, and
// requests that only count tokens, pass. All else is refused with *UnboundedCall, because it may cost anything: other paths, upgrades,
// and calls whose tokens cost more than the price table says, such as audio, and a tier or a cache of an hour without a price.
//
// It asks a stream of chat completions for its usage. The chunk that has it reaches only a caller who asked for it too; all other bytes
// pass as they came, each event when it is whole, and the last one when the call is settled. It sends each call once: the base repeats
// on another connection only what it had not begun to send, because the first one had ended while it was idle.
//
// A hold that does not fit the session is a *client.LimitReached, and nothing is sent. Other errors before the call are
// *prices.UnknownModel, *UnboundedCall and those of client.Session.Begin. As from any RoundTripper, http.Client returns them in
// a *url.Error: use errors.As.
//
// Read the body of an answer to its end or close it. Otherwise the call settles when its context ends, or with Expiry.
type Transport struct {
	Session *client.Session // pays for the calls
	Prices  *prices.Table
	Base    http.RoundTripper // sends the calls; nil: http.DefaultTransport

	// Models maps names that requests use to names in Prices. A name that it does not have is looked up as it is.
	Models map[string]string

	ActionType string        // empty: llm.call
	Expiry     time.Duration // of the hold; extended while a call waits for its answer and while that is read; at least a second; 0: 10 minutes

	// With client.Ask, a call beyond the session's limit asks for what is missing and waits for the decision.
	OnLimit client.OnLimit
	Reason  string // for who decides; client.Ask requires it

	// OnError gets each settlement that failed, and of each answer without usage whose reader did not see *UsageMissing.
	// The answer is delivered all the same, and a hold that is not settled expires. nil: slog.Error.
	OnError func(error)
}

// RoundTrip holds, calls and settles.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	format, passes := formatOf(r)
	if passes {
		return t.base().RoundTrip(r)
	}
	q, err := t.read(r, format)
	if err == nil && t.Session == nil {
		err = errors.New("metered: Transport.Session is nil")
	}
	if err != nil {
		return nil, err
	}
	worst, err := q.Worst()
	if err != nil {
		return nil, err
	}
	tx, err := t.begin(r.Context(), client.TransactionParams{
		ActionType: cmp.Or(t.ActionType, defaultActionType), Value: worst, ExpiresIn: t.expiry(), Irreversible: true, OnExpiry: "commit",
		Metadata: map[string]string{"model": q.Model}, OnLimit: t.OnLimit, Reason: t.Reason,
	})
	if err != nil {
		return nil, explained(q, err, worst)
	}
	s := &settlement{tx: tx, transport: t, call: q, hold: worst, ctx: context.WithoutCancel(r.Context()), begun: time.Now()}
	return t.send(r, q, s)
}

// begin begins the transaction of a call. If a limit refuses it and the transport asks for more, it waits for the decision.
func (t *Transport) begin(ctx context.Context, p client.TransactionParams) (*client.Transaction, error) {
	asks := p.OnLimit == client.Ask
	p.OnLimit = ""
	tx, err := t.beginAtOnce(ctx, p)
	if asks && errors.As(err, new(*client.LimitReached)) {
		p.OnLimit = client.Ask
		return t.Session.Begin(ctx, p)
	}
	return tx, err
}

// beginAtOnce returns at once when the context ends. The hold, if it comes to be, is then rolled back.
func (t *Transport) beginAtOnce(ctx context.Context, p client.TransactionParams) (*client.Transaction, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type begun struct {
		tx  *client.Transaction
		err error
	}
	result := make(chan begun)
	go func() { // it ends with beginLimit, and settleLimit at most for the rollback
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginLimit)
		defer cancel()
		tx, err := t.Session.Begin(detached, p)
		select {
		case result <- begun{tx, err}:
		case <-ctx.Done():
			if err == nil {
				t.reported(tx.Rollback(ctx, "cancelled"), "roll back", tx.ID())
			}
		}
	}()
	select {
	case b := <-result:
		return b.tx, b.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *Transport) send(r *http.Request, q *wire.Call, s *settlement) (*http.Response, error) {
	waits, answered := context.WithCancel(s.ctx)
	defer answered()
	go s.extendUntil(waits)
	once := wire.NewOnce(q.Body)
	q.Forget()
	answer, err := t.base().RoundTrip(request(once, r))
	answered()
	switch {
	case err != nil && once.IsUnsent(err):
		s.rollBack("not sent")
		return nil, err
	case err != nil:
		s.commit(s.hold)
		return nil, err
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		s.rollBack("HTTP status " + answer.Status)
		return answer, nil
	}
	b := newBody(r.Context(), answer, s)
	if b.meter.Shortens() {
		answer.ContentLength = -1
		answer.Header.Del("Content-Length")
	}
	answer.Body = b
	return answer, nil
}

func (t *Transport) base() http.RoundTripper { return cmp.Or(t.Base, http.DefaultTransport) }

func (t *Transport) expiry() time.Duration { return cmp.Or(t.Expiry, defaultExpiry) }

// period is shorter than the hold's time, so that the hold is extended or settled before it expires.
func (t *Transport) period() time.Duration { return t.expiry() * 3 / 4 }

// reported reports an error of a settlement.
func (t *Transport) reported(err error, what, transaction string) {
	if err != nil {
		t.report(fmt.Errorf("metered: %s the hold of transaction %s: %w", what, transaction, err))
	}
}

func (t *Transport) report(err error) {
	if t.OnError != nil {
		t.OnError(err)
		return
	}
	slog.Error("a model call was not settled", "error", err)
}

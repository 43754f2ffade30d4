package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
	"remit/server/pages"
)

// hold is the transaction of one call: begun as the caller, and from then on the gateway's.
type hold struct {
	gateway *Gateway
	id      redisstore.HeldTransaction
	value   money.MicroUSD
	lasts   time.Duration
	model   string          // for the log
	traced  context.Context // the request's span, for the settlement

	sessionLeft money.MicroUSD // with this taken
	wouldRefuse string         // the limit that it is beyond, in a session that observes

	mu      sync.Mutex
	renewal *time.Timer
	settled bool
}

// left is what a limit that refused a begin leaves.
type left struct {
	value money.MicroUSD
	known bool
}

// beginning is the body of a begin.
type beginning struct {
	ActionType string            `json:"action_type"`
	Session    uuid.UUID         `json:"session_id"`
	Value      money.MicroUSD    `json:"value_usd"`
	Reversible bool              `json:"reversible"`
	OnExpiry   string            `json:"on_expiry"`
	Lasts      int64             `json:"expires_in_seconds"`
	Metadata   beginningMetadata `json:"metadata"`
}

type beginningMetadata struct {
	Model    string `json:"model"`
	Prices   string `json:"prices"` // the version of their table
	Upstream string `json:"upstream"`
}

// begin holds a value for a call, as the caller. A refusal comes with what would have fitted.
func (g *Gateway) begin(e *exchange, model string, value money.MicroUSD) (*hold, *refusal, left) {
	body, err := json.Marshal(beginning{
		ActionType: "llm." + model, Session: e.caller.session, Value: value, OnExpiry: "commit", Lasts: int64(e.settings.Hold / time.Second),
		Metadata: beginningMetadata{Model: model, Prices: e.settings.version, Upstream: e.target.upstream.Name},
	})
	if err != nil {
		return nil, internalError(err), left{}
	}
	call := e.call(http.MethodPost, "/v1/transactions")
	call.Body = body
	var begun redisstore.Transaction
	var refusedBy error
	var refused *refusal
	err = g.host.CallWith(call, func(ctx *fasthttp.RequestCtx) { begun, refusedBy = g.holder.Begin(ctx) }, func(reply pages.Reply) error {
		refused = refusalOf(reply)
		return nil
	})
	switch {
	case err != nil:
		return nil, internalError(err), left{}
	case refused != nil:
		actions, room, known := redisstore.Left(refusedBy)
		if known && refused.remaining == nil {
			refused.remaining = &room
		}
		return nil, refused, left{room, known && actions > 0}
	case refusedBy != nil || begun.ID == uuid.Nil:
		return nil, internalError(errors.Join(errors.New("a begin that was not refused began nothing"), refusedBy)), left{}
	}
	h := &hold{
		gateway: g, id: redisstore.HeldAs(e.caller.Organization, begun), value: value, lasts: e.settings.Hold, model: model, traced: e.traced(),
		sessionLeft: begun.SessionLeft, wouldRefuse: begun.WouldRefuse,
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.renewal = time.AfterFunc(h.lasts/2, h.renew)
	return h, nil, left{}
}

// renewTime bounds one attempt to renew or to settle.
const renewTime = 5 * time.Second

// renew gives the hold its whole time again, and comes back at half of that. A hold that has ended stays so: it was spent, because no
// gateway could renew it in time, or an operator rolled it back.
func (h *hold) renew() {
	ctx, cancel := context.WithTimeout(h.gateway.background, renewTime)
	defer cancel()
	_, err := h.gateway.holder.Renew(ctx, h.id, h.lasts)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.settled {
		return
	}
	next := h.lasts / 2
	if errors.Is(err, redisstore.ErrUnknownTransaction) || errors.As(err, new(*redisstore.NotPendingError)) {
		h.gateway.log.Warn("a hold has ended before its call", "transaction_id", h.id.ID, "cause", err)
		return
	}
	if err != nil {
		h.gateway.log.Warn("a hold was not renewed", "transaction_id", h.id.ID, "cause", err)
		next = min(next, renewTime)
	}
	h.renewal.Reset(next)
}

// The ways in which a call is settled.
const (
	byUsage    = "usage"       // the provider's own
	byHold     = "hold"        // in doubt: all that was held
	rolledBack = "rolled_back" // nothing was used
)

// settlement says what a call cost.
type settlement struct {
	how    string
	cost   money.MicroUSD // of byUsage
	reason string         // of the others
}

// settleWait is how long the end of an answer waits for the settlement. It goes on after that.
const settleWait = 5 * time.Second

// settle settles the call, and waits for that for settleWait. It does nothing if the call is settled.
func (h *hold) settle(s settlement) (isFirst bool) {
	h.mu.Lock()
	isFirst = !h.settled
	h.settled = true
	h.renewal.Stop()
	h.mu.Unlock()
	if !isFirst {
		return false
	}
	h.gateway.metrics.settled(s.how)
	if s.how == byUsage && s.cost > h.value {
		h.gateway.log.Warn("a call cost more than was held: the bound of its model is wrong",
			"model", h.model, "held_usd", h.value.String(), "cost_usd", s.cost.String(), "transaction_id", h.id.ID)
	}
	began := time.Now()
	h.gateway.metrics.unsettled.Inc()
	if h.store(s, began) { // here, because a goroutine of its own, whose stack grows first, costs more
		h.gateway.metrics.unsettled.Dec()
		return true
	}
	done := make(chan struct{})
	h.gateway.busy.do(func() {
		defer close(done)
		h.settleUntilDone(s, began)
	})
	select {
	case <-done:
	case <-time.After(settleWait - time.Since(began)):
	}
	return true
}

// settleUntilDone stores a settlement that could not be stored at first. Until it is, the hold stands, and is spent when it expires.
func (h *hold) settleUntilDone(s settlement, began time.Time) {
	defer h.gateway.metrics.unsettled.Dec()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		select {
		case <-time.After(pause):
		case <-h.gateway.background.Done():
		}
		if h.store(s, began) {
			return
		}
	}
}

// store stores the settlement. It may be sent again, because it happens once. isOver: it is stored, or given up.
func (h *hold) store(s settlement, began time.Time) (isOver bool) {
	err := h.send(s)
	if err == nil {
		return true
	}
	isOver = errors.Is(err, redisstore.ErrUnknownTransaction) || time.Since(began) > 2*h.lasts || h.gateway.background.Err() != nil
	if isOver {
		h.gateway.metrics.failures.Inc()
		h.gateway.log.Error("a call was not settled: what was held is spent when the hold expires",
			"transaction_id", h.id.ID, "how", s.how, "cause", err)
	}
	return isOver
}

func (h *hold) send(s settlement) error {
	ctx, cancel := context.WithTimeout(h.traced, renewTime)
	defer cancel()
	var err error
	switch s.how {
	case rolledBack:
		_, err = h.gateway.holder.Rollback(ctx, h.id, s.reason)
	case byUsage:
		_, err = h.gateway.holder.Commit(ctx, h.id, &s.cost)
	default:
		_, err = h.gateway.holder.Commit(ctx, h.id, nil)
	}
	return err
}

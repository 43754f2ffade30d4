package budgets

import (
	"context"
	"errors"
	"time"

	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
)

// heldByGateway is the holder of a transaction that only the metering gateway settles.
const heldByGateway = "gateway"

// Gateway is what the metering gateway asks of the server, inside the process. No request of the API can.
type Gateway struct {
	handlers *Handlers
	api      fasthttp.RequestHandler
}

// Gateway returns what the gateway asks of a server with this handler of the API.
func (h *Handlers) Gateway(api fasthttp.RequestHandler) *Gateway { return &Gateway{h, api} }

var errNotBegun = errors.New("the request begins no transaction; its answer says why")

// heldBegin is what became of a begin by the gateway.
type heldBegin struct {
	begun redisstore.Transaction
	err   error
}

type heldBeginKey struct{}

// Begin has the API answer a request to begin a transaction in a session, with the caller's credential. The gateway holds the
// transaction. Without one, Begin returns the refusal of the store (redisstore.Left says what would have fitted), or that the request
// did not come so far. ctx has the answer in each case.
func (g *Gateway) Begin(ctx *fasthttp.RequestCtx) (redisstore.Transaction, error) {
	begin := &heldBegin{err: errNotBegun}
	ctx.SetUserValue(heldBeginKey{}, begin)
	g.api(ctx)
	return begin.begun, begin.err
}

// heldBeginOf returns nil unless the gateway makes the request.
func heldBeginOf(ctx *fasthttp.RequestCtx) *heldBegin {
	begin, _ := ctx.UserValue(heldBeginKey{}).(*heldBegin)
	return begin
}

// became keeps what became of the begin. It does nothing for another caller (nil).
func (b *heldBegin) became(begun redisstore.Transaction, err error) {
	if b != nil {
		b.begun, b.err = begun, err
	}
}

// Commit is redisstore's CommitHeld.
func (g *Gateway) Commit(ctx context.Context, held redisstore.HeldTransaction, cost *money.MicroUSD) (redisstore.Transaction, error) {
	return g.settled(g.handlers.Store.CommitHeld(ctx, held, cost))
}

// Rollback is redisstore's RollbackHeld.
func (g *Gateway) Rollback(ctx context.Context, held redisstore.HeldTransaction, reason string) (redisstore.Transaction, error) {
	return g.settled(g.handlers.Store.RollbackHeld(ctx, held, reason))
}

// Renew is redisstore's RenewHeld.
func (g *Gateway) Renew(ctx context.Context, held redisstore.HeldTransaction, lifetime time.Duration) (redisstore.Transaction, error) {
	return g.handlers.Store.RenewHeld(ctx, held, lifetime)
}

// settled counts a settlement, unless the transaction was settled before.
func (g *Gateway) settled(t redisstore.Transaction, err error) (redisstore.Transaction, error) {
	counted := g.handlers.counted
	switch {
	case err != nil || t.Repeated:
	case t.Status == redisstore.RolledBack:
		counted.transaction(counted.rolledBack, t, nil)
	default:
		counted.transaction(counted.committed, t, nil)
	}
	return t, err
}

package budgets

import (
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) listTransactions(ctx *fasthttp.RequestCtx, caller access.Caller) error {
	query, err := web.ReadQuery(ctx, []redisstore.Status{
		redisstore.Pending, redisstore.Committed, redisstore.RolledBack, redisstore.Expired,
	}, "agent_id", "session_id", "settled_by")
	if err != nil {
		return err
	}
	if query, err = caller.WithinReach(query); err != nil {
		return err
	}
	if err := h.Front.ReserveAnswer(ctx, query.Limit*web.SummaryBytes); err != nil {
		return err
	}
	page, err := h.Store.Transactions(web.RequestContext(ctx), caller.Caller, query)
	if err != nil {
		return err
	}
	web.AnnounceNext(ctx, page.Next)
	return web.AnswerList(ctx, page.Items, func(o web.Object, t redisstore.Transaction) (web.Object, error) {
		return summaryOf(t).appendSummary(o)
	})
}

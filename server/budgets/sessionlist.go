package budgets

import (
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// SessionSummary is a session in a list.
type SessionSummary struct {
	ID          uuid.UUID         `json:"id"`
	Agent       uuid.UUID         `json:"agent_id"`
	Status      redisstore.Status `json:"status"`
	ActionCount int64             `json:"action_count"`
	MaxActions  int64             `json:"max_actions"`
	ValueUsed   money.MicroUSD    `json:"value_used_usd"`
	MaxValue    money.MicroUSD    `json:"max_value_usd"`
	Expires     web.Timestamp     `json:"expires_at"`
}

// summaryOfSession returns a session as lists show it.
func summaryOfSession(v redisstore.SessionSummary) SessionSummary {
	return SessionSummary{v.ID, v.Agent, v.Status, v.ActionCount, v.MaxActions, v.ValueUsed, v.MaxValue, web.Timestamp(v.Expires)}
}

func (h *Handlers) listSessions(ctx *fasthttp.RequestCtx, caller access.Caller) error {
	query, err := web.ReadQuery(ctx, []redisstore.Status{
		redisstore.Active, redisstore.Completed, redisstore.Expired, redisstore.Revoked,
	}, "agent_id")
	if err != nil {
		return err
	}
	if err := h.Front.ReserveAnswer(ctx, query.Limit*web.SummaryBytes); err != nil {
		return err
	}
	page, err := h.listedSessions(ctx, caller, query)
	if err != nil {
		return err
	}
	web.AnnounceNext(ctx, page.Next)
	return web.AnswerList(ctx, page.Items, func(o web.Object, v redisstore.SessionSummary) (web.Object, error) {
		return summaryOfSession(v).append(o), nil
	})
}

// listedSessions returns a page of the sessions that the caller may see: with a delegated token, its own alone.
func (h *Handlers) listedSessions(ctx *fasthttp.RequestCtx, c access.Caller, q redisstore.Query) (redisstore.Page[redisstore.SessionSummary], error) {
	if c.Delegated == nil {
		return h.Store.Sessions(web.RequestContext(ctx), c.Caller, q)
	}
	if q.Agent != uuid.Nil && q.Agent != c.Delegated.Agent {
		return redisstore.Page[redisstore.SessionSummary]{}, redisstore.ErrUnknownAgent
	}
	session, err := h.Store.Session(web.RequestContext(ctx), c.Caller, c.Delegated.Session)
	if err != nil {
		return redisstore.Page[redisstore.SessionSummary]{}, err
	}
	own := []redisstore.SessionSummary{{
		ID: session.ID, Agent: session.Agent, Status: session.Status, ActionCount: session.ActionCount, MaxActions: session.MaxActions,
		ValueUsed: session.ValueUsed, MaxValue: session.MaxValue, Expires: session.Expires,
	}}
	return redisstore.Page[redisstore.SessionSummary]{Items: slices.DeleteFunc(own, func(v redisstore.SessionSummary) bool {
		return q.Status != "" && v.Status != q.Status || q.Before != uuid.Nil && strings.Compare(string(v.ID[:]), string(q.Before[:])) >= 0
	})}, nil
}

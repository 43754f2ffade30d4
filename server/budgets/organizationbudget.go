package budgets

import (
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) budgetRoutes(r *web.Routes) {
	r.Put("/v1/budget", redisstore.Admin, access.ByKey(h.setBudget))
	r.Get("/v1/budget", redisstore.Viewer, access.ByKey(h.getBudget))
	r.Delete("/v1/budget", redisstore.Admin, access.ByKey(h.deleteBudget))
}

type budgetRequest struct {
	MaxValue web.Optional[money.MicroUSD] `json:"max_value_usd"`
	Period   web.Optional[string]         `json:"period"`
}

func (r *budgetRequest) check() error {
	var v web.Validation
	v.Require(r.MaxValue.Given, "max_value_usd", "is required")
	switch {
	case !r.Period.Given:
		v.Add("period", "is required")
	case r.Period.Value != string(redisstore.BudgetDay) && r.Period.Value != string(redisstore.BudgetMonth) &&
		r.Period.Value != string(redisstore.BudgetForever):
		v.Add("period", "must be day, month or none")
	}
	return v.Err()
}

// budgetAnswer is an organization's budget.
type budgetAnswer struct {
	MaxValue  money.MicroUSD          `json:"max_value_usd"`
	Period    redisstore.BudgetPeriod `json:"period"`
	Reserved  money.MicroUSD          `json:"value_reserved_usd"`
	Used      money.MicroUSD          `json:"value_used_usd"`
	Remaining money.MicroUSD          `json:"remaining_usd"`
	Started   *web.Timestamp          `json:"period_started_at"`
	Resets    *web.Timestamp          `json:"resets_at"`
}

func budgetOf(b redisstore.OrganizationBudget) budgetAnswer {
	a := budgetAnswer{MaxValue: b.MaxValue, Period: b.Period, Reserved: b.Reserved, Used: b.Used, Remaining: b.Remaining()}
	if !b.Resets.IsZero() {
		started, resets := web.Timestamp(b.Started), web.Timestamp(b.Resets)
		a.Started, a.Resets = &started, &resets
	}
	return a
}

// setBudget sets what all sessions of the organization may spend in a period.
func (h *Handlers) setBudget(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	var request budgetRequest
	if err := web.Decode(ctx, &request); err != nil {
		return err
	}
	if err := request.check(); err != nil {
		return err
	}
	set, err := h.Store.SetBudget(web.RequestContext(ctx), key, request.MaxValue.Value, redisstore.BudgetPeriod(request.Period.Value))
	return web.AnswerOf(ctx, budgetOf, set, err)
}

func (h *Handlers) getBudget(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	b, err := h.Store.Budget(web.RequestContext(ctx), key)
	return web.AnswerOf(ctx, budgetOf, b, err)
}

func (h *Handlers) deleteBudget(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	return web.AnswerNothing(ctx, h.Store.DeleteBudget(web.RequestContext(ctx), key))
}

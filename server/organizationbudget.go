package server

import (
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
)

func (s *Server) budgetRoutes(r *routes) {
	r.put("/v1/budget", redisstore.Admin, s.setBudget)
	r.get("/v1/budget", redisstore.Viewer, s.getBudget)
	r.delete("/v1/budget", redisstore.Admin, s.deleteBudget)
}

type budgetRequest struct {
	MaxValue optional[money.MicroUSD] `json:"max_value_usd"`
	Period   optional[string]         `json:"period"`
}

func (r *budgetRequest) check() error {
	var v validation
	v.require(r.MaxValue.given, "max_value_usd", "is required")
	switch {
	case !r.Period.given:
		v.add("period", "is required")
	case r.Period.value != string(redisstore.BudgetDay) && r.Period.value != string(redisstore.BudgetMonth) &&
		r.Period.value != string(redisstore.BudgetForever):
		v.add("period", "must be day, month or none")
	}
	return v.err()
}

// budgetAnswer is an organization's budget.
type budgetAnswer struct {
	MaxValue  money.MicroUSD          `json:"max_value_usd"`
	Period    redisstore.BudgetPeriod `json:"period"`
	Reserved  money.MicroUSD          `json:"value_reserved_usd"`
	Used      money.MicroUSD          `json:"value_used_usd"`
	Remaining money.MicroUSD          `json:"remaining_usd"`
	Started   *timestamp              `json:"period_started_at"`
	Resets    *timestamp              `json:"resets_at"`
}

func budgetOf(b redisstore.OrganizationBudget) budgetAnswer {
	a := budgetAnswer{MaxValue: b.MaxValue, Period: b.Period, Reserved: b.Reserved, Used: b.Used, Remaining: b.Remaining()}
	if !b.Resets.IsZero() {
		started, resets := timestamp(b.Started), timestamp(b.Resets)
		a.Started, a.Resets = &started, &resets
	}
	return a
}

// setBudget sets what all sessions of the organization may spend in a period.
func (s *Server) setBudget(ctx *fasthttp.RequestCtx) error {
	key, err := organizationKey(ctx)
	if err != nil {
		return err
	}
	var request budgetRequest
	if err := decode(ctx, &request); err != nil {
		return err
	}
	if err := request.check(); err != nil {
		return err
	}
	set, err := s.store.SetBudget(requestContext(ctx), key, request.MaxValue.value, redisstore.BudgetPeriod(request.Period.value))
	if err != nil {
		return err
	}
	return answer(ctx, budgetOf(set))
}

func (s *Server) getBudget(ctx *fasthttp.RequestCtx) error {
	key, err := organizationKey(ctx)
	if err != nil {
		return err
	}
	b, err := s.store.Budget(requestContext(ctx), key)
	if err != nil {
		return err
	}
	return answer(ctx, budgetOf(b))
}

func (s *Server) deleteBudget(ctx *fasthttp.RequestCtx) error {
	key, err := organizationKey(ctx)
	if err != nil {
		return err
	}
	if err := s.store.DeleteBudget(requestContext(ctx), key); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

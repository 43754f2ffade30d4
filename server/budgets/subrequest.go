package budgets

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// subrequestRoutes omits AuthorizePath itself, which answers every method: package server routes every method of it to Authorize.
func (h *Handlers) subrequestRoutes(r *web.Routes) {
	r.AnyBelow(web.AuthorizePath, web.NoKey, h.Authorize)
}

// Authorize verifies an access token and charges a session of its agent, in one subrequest.
func (h *Handlers) Authorize(ctx *fasthttp.RequestCtx) error {
	granted, proof, err := h.Guard.SubrequestToken(ctx)
	if err != nil {
		return err
	}
	session, wanted, err := subrequestCharge(ctx)
	if err != nil {
		return h.Guard.AtSubrequest(err)
	}
	caller := granted.Caller
	if err := h.Guard.OutOfReach(ctx, caller, caller.MayActIn(session)); err != nil {
		return h.Guard.AtSubrequest(err)
	}
	if err := caller.MayUse(wanted.Scope); err != nil {
		h.counted.charged(wanted, err)
		return err
	}
	if err := h.Guard.UseProof(ctx, granted, proof); err != nil {
		return h.Guard.SubrequestProofError(err)
	}
	usage, left, err := h.Store.Authorize(web.RequestContext(ctx), caller.Caller, session, wanted)
	h.counted.charged(wanted, err)
	if err != nil {
		return h.Guard.AtSubrequest(redisstore.Needing(err, wanted.Count, wanted.Value))
	}
	granted.WriteIdentity(ctx, left)
	remaining := web.UsageOf(usage)
	header := &ctx.Response.Header
	header.Set("X-Remaining-Actions", strconv.FormatInt(remaining.RemainingActions, 10))
	header.Set("X-Remaining-Value-Usd", remaining.RemainingValue.String())
	if usage.WouldRefuse != "" {
		header.Set("X-Would-Refuse", usage.WouldRefuse)
	}
	h.counted.observed(usage.WouldRefuse, wanted.DryRun, wanted.Idempotency)
	return nil
}

// subrequestCharge reads a charge from the query, which the proxy's configuration writes, or else from headers.
func subrequestCharge(ctx *fasthttp.RequestCtx) (uuid.UUID, redisstore.Charge, error) {
	var v web.Validation
	var request chargeRequest
	access.CheckParameters(&v, ctx, "session_id", "value_usd", "count", "action_type", "scope", "audience", subrequestDryRun, subrequestKey)
	session := v.ID("session_id", optionalText(access.ParameterOf(&v, ctx, "session_id", "X-Session-Id")))
	request.ActionType = optionalText(access.ParameterOf(&v, ctx, "action_type", "X-Action-Type"))
	request.Scope = optionalText(access.ParameterOf(&v, ctx, "scope", "X-Scope"))
	if text := access.ParameterOf(&v, ctx, "value_usd", "X-Value-Usd"); text != "" {
		amount, err := money.Parse([]byte(text))
		if err != nil {
			v.Add("value_usd", err.Error())
		}
		request.Value = web.Optional[money.MicroUSD]{Value: amount, Given: true}
	}
	if text := access.ParameterOf(&v, ctx, "count", "X-Count"); text != "" {
		count, err := strconv.ParseInt(text, 10, 64)
		v.Require(err == nil, "count", "must be a whole number")
		request.Count = web.Optional[int64]{Value: count, Given: err == nil}
	}
	request.DryRun = dryRunParameter(&v, ctx)
	idempotency := idempotencyParameter(&v, ctx, session, &request)
	v.Require(idempotency == nil || !request.DryRun.Value, subrequestDryRun, web.NotWithAKey)
	if err := v.Err(); err != nil {
		return uuid.Nil, redisstore.Charge{}, err
	}
	charge, err := request.charge()
	charge.Idempotency = idempotency
	return session, charge, err
}

// subrequestDryRun is the query parameter for a dry run. No header stands in for it: a proxy passes on headers of its client,
// which could then pass unpaid.
const subrequestDryRun = "dry_run"

func dryRunParameter(v *web.Validation, ctx *fasthttp.RequestCtx) web.Optional[bool] {
	if web.BelowSubrequestPath(ctx.URI().PathOriginal()) || !ctx.QueryArgs().Has(subrequestDryRun) {
		return web.Optional[bool]{}
	}
	text := access.ParameterOf(v, ctx, subrequestDryRun, "")
	v.Require(text == "" || text == "true" || text == "false", subrequestDryRun, "must be true or false")
	return web.Optional[bool]{Value: text == "true", Given: true}
}

// subrequestKey is the query parameter for the idempotency key.
const subrequestKey = "idempotency_key"

// forwarding are the headers in which proxies describe the original request.
var forwarding = []string{"X-Forwarded-Uri", "X-Forwarded-Method", "X-Original-Uri", "X-Original-Url", "X-Original-Method"}

// idempotencyParameter returns the idempotency of a charge if the proxy sets a key, else nil. It ignores a key that the
// proxy only passes on: that one is the client's, made for the backend, and a client that used one key for all its
// requests would pay once.
func idempotencyParameter(v *web.Validation, ctx *fasthttp.RequestCtx, session uuid.UUID, r *chargeRequest) *redisstore.Idempotency {
	inQuery := ctx.QueryArgs().Has(subrequestKey)
	if !inQuery && len(ctx.Request.Header.PeekCanonical(web.CanonicalIdempotencyKey)) == 0 {
		return nil
	}
	if web.BelowSubrequestPath(ctx.URI().PathOriginal()) || !inQuery && isForwarded(ctx) {
		return nil
	}
	key := access.ParameterOf(v, ctx, subrequestKey, web.HeaderIdempotencyKey)
	v.Require(web.IsIdempotencyKey([]byte(key)), subrequestKey, web.NotAnIdempotencyKey)
	body := fmt.Appendf(nil, "%d %d %q %q", r.Count.Or(1), int64(r.Value.Value), r.Scope.Value, r.ActionType.Value)
	return web.NewIdempotency(ctx, key, "authorize", session, body)
}

func isForwarded(ctx *fasthttp.RequestCtx) bool {
	return slices.ContainsFunc(forwarding, func(name string) bool { return len(ctx.Request.Header.Peek(name)) > 0 })
}

// optionalText returns an optional field that counts as absent when it is empty.
func optionalText(text string) web.Optional[string] {
	return web.Optional[string]{Value: text, Given: text != ""}
}

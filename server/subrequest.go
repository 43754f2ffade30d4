package server

import (
	"errors"
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

// subrequestRoutes omits AuthorizePath itself, which answers every method: see Handler.
func (s *Server) subrequestRoutes(r *web.Routes) {
	r.Get(web.VerifyPath, web.NoKey, s.verify)
	r.AnyBelow(web.VerifyPath, web.NoKey, s.verify)
	r.AnyBelow(web.AuthorizePath, web.NoKey, s.authorize)
}

// subrequestError answers 403 in place of other client errors, which a proxy would take for a fault of this service.
type subrequestError struct{ cause error }

func (e *subrequestError) Error() string { return e.cause.Error() }
func (e *subrequestError) Unwrap() error { return e.cause }

func (e *subrequestError) Problem() web.Problem {
	p := problemOf(e.cause)
	if p.Status < 500 && p.Status != 401 {
		p.Status = 403
	}
	return p
}

// subrequestToken returns the verified access token that the request carries, for the audience that the proxy names, or else for
// this service; and the proof of one that is bound to a key.
func (s *Server) subrequestToken(ctx *fasthttp.RequestCtx) (*access.CachedToken, *redisstore.Proof, error) {
	given, found := access.AccessToken(ctx)
	if !found {
		return nil, nil, access.ErrMissingToken
	}
	granted, err := s.guard.AnyToken(ctx, given)
	if err != nil {
		return nil, nil, err
	}
	var v web.Validation
	audience := access.ParameterOf(&v, ctx, "audience", "X-Audience")
	if err := v.Err(); err != nil {
		return nil, nil, &subrequestError{err}
	}
	if !granted.IsFor(audience) {
		return nil, nil, access.ErrInvalidToken
	}
	granted, proof, err := s.guard.Admit(ctx, granted)
	if err != nil && errors.As(err, new(*web.InvalidRequest)) {
		err = &subrequestError{err}
	}
	return granted, proof, err
}

// subrequestProofError is AsProofError for a proxy, which understands 401 and 403.
func subrequestProofError(err error) error {
	if errors.Is(err, redisstore.ErrManyProofs) {
		return &subrequestError{err}
	}
	return access.AsProofError(401, err)
}

// verify returns the agent of an access token that is live and holds the scope. The agent is not suspended.
func (s *Server) verify(ctx *fasthttp.RequestCtx) error {
	granted, proof, err := s.subrequestToken(ctx)
	if err != nil {
		return err
	}
	left, err := s.verifyLive(ctx, granted, proof)
	if err != nil {
		return err
	}
	var v web.Validation
	checkParameters(&v, ctx, "scope", "audience")
	scope := access.ParameterOf(&v, ctx, "scope", "X-Scope")
	v.Require(scope == "" || web.IsScope(scope), "scope", "must be one scope")
	if err := v.Err(); err != nil {
		return &subrequestError{err}
	}
	caller := granted.Caller
	caller.Scopes = left.Of(caller.Scopes)
	if err := caller.MayUse(scope); err != nil {
		return err
	}
	granted.WriteIdentity(ctx, left)
	return nil
}

// authorize verifies an access token and charges a session of its agent, in one subrequest.
func (s *Server) authorize(ctx *fasthttp.RequestCtx) error {
	access, proof, err := s.subrequestToken(ctx)
	if err != nil {
		return err
	}
	session, wanted, err := subrequestCharge(ctx)
	if err != nil {
		return &subrequestError{err}
	}
	caller := access.Caller
	if err := caller.MayActIn(session); err != nil {
		return &subrequestError{err}
	}
	if err := caller.MayUse(wanted.Scope); err != nil {
		s.metrics.charged(wanted, err)
		return err
	}
	if err := s.guard.UseProof(ctx, access, proof); err != nil {
		return subrequestProofError(err)
	}
	usage, left, err := s.store.Authorize(web.RequestContext(ctx), caller.Caller, session, wanted)
	s.front.ReportReplay(ctx, wanted.Idempotency)
	s.metrics.charged(wanted, err)
	if err != nil {
		return &subrequestError{redisstore.Needing(err, wanted.Count, wanted.Value)}
	}
	access.WriteIdentity(ctx, left)
	remaining := web.UsageOf(usage)
	header := &ctx.Response.Header
	header.Set("X-Remaining-Actions", strconv.FormatInt(remaining.RemainingActions, 10))
	header.Set("X-Remaining-Value-Usd", remaining.RemainingValue.String())
	if usage.WouldRefuse != "" {
		header.Set("X-Would-Refuse", usage.WouldRefuse)
	}
	s.metrics.observed(usage.WouldRefuse, wanted.DryRun, wanted.Idempotency)
	return nil
}

// subrequestCharge reads a charge from the query, which the proxy's configuration writes, or else from headers.
func subrequestCharge(ctx *fasthttp.RequestCtx) (uuid.UUID, redisstore.Charge, error) {
	var v web.Validation
	var request chargeRequest
	checkParameters(&v, ctx, "session_id", "value_usd", "count", "action_type", "scope", "audience", subrequestDryRun, subrequestKey)
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
	return web.NewIdempotency(key, "authorize", session, body)
}

func isForwarded(ctx *fasthttp.RequestCtx) bool {
	return slices.ContainsFunc(forwarding, func(name string) bool { return len(ctx.Request.Header.Peek(name)) > 0 })
}

// checkParameters refuses unknown parameters, because a misspelt scope or price would let requests pass unchecked.
func checkParameters(v *web.Validation, ctx *fasthttp.RequestCtx, known ...string) {
	if web.BelowSubrequestPath(ctx.URI().PathOriginal()) {
		return
	}
	for name := range ctx.QueryArgs().All() {
		if !slices.ContainsFunc(known, func(one string) bool { return one == string(name) }) {
			v.Add(web.Shown(string(name)), "is not a parameter here")
		}
	}
}

// optionalText returns an optional field that counts as absent when it is empty.
func optionalText(text string) web.Optional[string] {
	return web.Optional[string]{Value: text, Given: text != ""}
}

// verifyLive asks the store about a token, and uses up its proof in the same call.
func (s *Server) verifyLive(ctx *fasthttp.RequestCtx, granted *access.CachedToken, proof *redisstore.Proof) (redisstore.ScopesLeft, error) {
	if proof == nil {
		return s.store.VerifyToken(web.ReadContext(ctx), *granted.Caller.Token)
	}
	left, err := s.store.VerifyProof(web.ReadContext(ctx), *granted.Caller.Token, *proof)
	return left, subrequestProofError(err)
}

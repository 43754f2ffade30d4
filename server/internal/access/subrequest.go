package access

import (
	"errors"
	"slices"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/web"
)

// VerificationRoutes registers the subrequest by which a proxy has a token checked.
func (g *Guard) VerificationRoutes(r *web.Routes) {
	r.Get(web.VerifyPath, web.NoKey, g.verify)
	r.AnyBelow(web.VerifyPath, web.NoKey, g.verify)
}

// SubrequestError answers 403 in place of other client errors, which a proxy would take for a fault of this service.
type SubrequestError struct {
	Cause error

	problemOf func(error) web.Problem
}

func (e *SubrequestError) Error() string { return e.Cause.Error() }
func (e *SubrequestError) Unwrap() error { return e.Cause }

// Problem implements the one of package web.
func (e *SubrequestError) Problem() web.Problem {
	p := e.problemOf(e.Cause)
	if p.Status < 500 && p.Status != 401 {
		p.Status = 403
	}
	return p
}

// AtSubrequest returns a SubrequestError.
func (g *Guard) AtSubrequest(cause error) error {
	return &SubrequestError{cause, g.Front.Hooks.ProblemOf}
}

// SubrequestToken returns the verified access token that the request carries, for the audience that the proxy names, or else for
// this service; and the proof of one that is bound to a key.
func (g *Guard) SubrequestToken(ctx *fasthttp.RequestCtx) (*CachedToken, *redisstore.Proof, error) {
	given, found := AccessToken(ctx)
	if !found {
		return nil, nil, ErrMissingToken
	}
	granted, err := g.AnyToken(ctx, given)
	if err != nil {
		return nil, nil, err
	}
	var v web.Validation
	audience := ParameterOf(&v, ctx, "audience", "X-Audience")
	if err := v.Err(); err != nil {
		return nil, nil, g.AtSubrequest(err)
	}
	if !granted.IsFor(audience) {
		return nil, nil, ErrInvalidToken
	}
	granted, proof, err := g.Admit(ctx, granted)
	if err != nil && errors.As(err, new(*web.InvalidRequest)) {
		err = g.AtSubrequest(err)
	}
	return granted, proof, err
}

// SubrequestProofError is AsProofError for a proxy, which understands 401 and 403.
func (g *Guard) SubrequestProofError(err error) error {
	if errors.Is(err, redisstore.ErrManyProofs) {
		return g.AtSubrequest(err)
	}
	return AsProofError(401, err)
}

// verify returns the agent of an access token that is live and holds the scope. The agent is not suspended.
func (g *Guard) verify(ctx *fasthttp.RequestCtx) error {
	granted, proof, err := g.SubrequestToken(ctx)
	if err != nil {
		return err
	}
	left, err := g.verifyLive(ctx, granted, proof)
	if err != nil {
		return err
	}
	var v web.Validation
	CheckParameters(&v, ctx, "scope", "audience")
	scope := ParameterOf(&v, ctx, "scope", "X-Scope")
	v.Require(scope == "" || web.IsScope(scope), "scope", "must be one scope")
	if err := v.Err(); err != nil {
		return g.AtSubrequest(err)
	}
	caller := granted.Caller
	caller.Scopes = left.Of(caller.Scopes)
	if err := caller.MayUse(scope); err != nil {
		return err
	}
	granted.WriteIdentity(ctx, left)
	return nil
}

// verifyLive asks the store about a token, and uses up its proof in the same call.
func (g *Guard) verifyLive(ctx *fasthttp.RequestCtx, granted *CachedToken, proof *redisstore.Proof) (redisstore.ScopesLeft, error) {
	if proof == nil {
		return g.Store.VerifyToken(web.ReadContext(ctx), *granted.Caller.Token)
	}
	left, err := g.Store.VerifyProof(web.ReadContext(ctx), *granted.Caller.Token, *proof)
	return left, g.SubrequestProofError(err)
}

// CheckParameters refuses unknown parameters, because a misspelt scope or price would let requests pass unchecked.
func CheckParameters(v *web.Validation, ctx *fasthttp.RequestCtx, known ...string) {
	if web.BelowSubrequestPath(ctx.URI().PathOriginal()) {
		return
	}
	for name := range ctx.QueryArgs().All() {
		if !slices.ContainsFunc(known, func(one string) bool { return one == string(name) }) {
			v.Add(web.Shown(string(name)), "is not a parameter here")
		}
	}
}

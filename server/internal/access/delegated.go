package access

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

// ScopeDelegate lets an agent create children of its sessions.
const ScopeDelegate = "sessions:delegate"

// reach is what of an operation a credential for one session may use: that session, and what belongs to it.
type reach int

const (
	reachesNothing     reach = iota // what concerns the whole agent
	reachesSession                  // {id} must be the credential's session
	reachesTransaction              // {id} must be a transaction of it
	reachesLease                    // {id} must be a lease of it
	reachesNamed                    // the handler holds what the request names, or what it lists, against the credential's session
	reachesIdentity                 // it concerns no session
)

// reached is the reach of a delegated token, and that of a session key.
type reached struct{ delegated, key reach }

// reaches is the only table of what delegated tokens and session keys may use of each operation that takes an access token, by method
// and route, or by route for those of every method. GET includes HEAD. An operation that is not listed refuses them.
var reaches = map[string]reached{
	"GET /v1/sessions":                            {reachesNamed, reachesNothing},
	"POST /v1/sessions":                           {reachesNamed, reachesNothing},
	"GET /v1/sessions/{id}":                       {reachesSession, reachesSession},
	"POST /v1/sessions/{id}/end":                  {reachesSession, reachesNothing},
	"GET /v1/sessions/{id}/tree":                  {reachesSession, reachesNothing},
	"GET /v1/sessions/{id}/usage":                 {reachesSession, reachesSession},
	"POST /v1/sessions/{id}/actions":              {reachesSession, reachesSession},
	"POST /v1/actions":                            {reachesNamed, reachesNamed},
	"POST /v1/sessions/{id}/leases":               {reachesSession, reachesSession},
	"GET /v1/leases/{id}":                         {reachesLease, reachesLease},
	"POST /v1/leases/{id}/settle":                 {reachesLease, reachesLease},
	"GET /v1/sessions/{id}/requests":              {reachesSession, reachesSession},
	"POST /v1/sessions/{id}/requests":             {reachesSession, reachesSession},
	"GET /v1/sessions/{id}/requests/{request_id}": {reachesSession, reachesSession},

	"GET /v1/transactions":                {reachesNamed, reachesNothing},
	"POST /v1/transactions":               {reachesNamed, reachesNamed},
	"GET /v1/transactions/{id}":           {reachesTransaction, reachesTransaction},
	"PATCH /v1/transactions/{id}":         {reachesTransaction, reachesTransaction},
	"POST /v1/transactions/{id}/commit":   {reachesTransaction, reachesTransaction},
	"POST /v1/transactions/{id}/rollback": {reachesTransaction, reachesTransaction},

	web.VerifyPath:         {reachesIdentity, reachesNothing},
	web.AuthorizePath:      {reachesNamed, reachesNamed},
	"POST /v1/auth/revoke": {reachesNothing, reachesNothing},

	"GET /v1/agents/{id}/events": {reachesNothing, reachesNothing},
}

// delegatedOf returns what the store checks of a delegated token, nil for any other.
func delegatedOf(access token.Access) *redisstore.DelegatedToken {
	if !access.Delegated() {
		return nil
	}
	d := &redisstore.DelegatedToken{AccessToken: heldBy(access)}
	for _, actor := range access.Actors {
		d.Actors = append(d.Actors, redisstore.AccessToken{Organization: access.Organization, Agent: actor.Agent, Family: actor.Family, Bound: d.Bound})
	}
	return d
}

// admitDelegated checks a delegated token and what the request wants with it. It returns the token with the scopes that its
// agents have left.
func (g *Guard) admitDelegated(ctx *fasthttp.RequestCtx, access *CachedToken) (*CachedToken, error) {
	web.InfoOf(ctx).Actor = access.Client
	scopes, err := g.CheckDelegated(web.ReadContext(ctx), access.Caller)
	if err != nil {
		return nil, err
	}
	if err := g.checkReach(ctx, access.Caller.Delegated); err != nil {
		return nil, err
	}
	if len(scopes) == len(access.Scopes) {
		return access, nil
	}
	narrowed := &CachedToken{Access: access.Access, text: access.text, Caller: access.Caller, identity: access.identity, forIssuer: access.forIssuer}
	narrowed.Scopes, narrowed.Caller.Scopes = scopes, scopes
	narrowed.identity.scopes = []byte(strings.Join(scopes, " "))
	return narrowed, nil
}

// CheckDelegated returns the scopes that a delegated token has left, while it is live. One that is checked again after a wait may
// have died meanwhile.
func (g *Guard) CheckDelegated(ctx context.Context, c Caller) ([]string, error) {
	left, err := g.Store.CheckDelegated(ctx, c.Delegated)
	if err != nil {
		return nil, err
	}
	scopes := c.Scopes
	for _, of := range left {
		scopes = of.Of(scopes)
	}
	return scopes, nil
}

// checkReach refuses an operation on anything but the token's session and what belongs to it. What there is otherwise, the answer
// does not say.
func (g *Guard) checkReach(ctx *fasthttp.RequestCtx, d *redisstore.DelegatedToken) error {
	var id uuid.UUID
	var err error
	allowed := reachOf(ctx).delegated
	switch allowed {
	case reachesSession, reachesTransaction, reachesLease:
		if id, err = web.PathID(ctx); err != nil {
			return err
		}
	}
	switch allowed {
	case reachesSession:
		if id != d.Session {
			return redisstore.ErrUnknownSession
		}
	case reachesTransaction:
		return g.Store.CheckTransaction(web.ReadContext(ctx), d, id)
	case reachesLease:
		return g.Store.CheckLease(web.ReadContext(ctx), d, id)
	case reachesNothing:
		return ErrDelegatedToken
	}
	return nil
}

// reachOf returns what delegated tokens and session keys may use of the request's operation.
func reachOf(ctx *fasthttp.RequestCtx) reached {
	method, route := string(ctx.Method()), web.InfoOf(ctx).Route
	if method == fasthttp.MethodHead {
		method = fasthttp.MethodGet
	}
	if one, listed := reaches[method+" "+route]; listed {
		return one
	}
	return reaches[route]
}

// MayActIn refuses a session that a delegated token or a session key does not reach.
func (c Caller) MayActIn(session uuid.UUID) error {
	if c.Token == nil || c.Token.Session == uuid.Nil || c.Token.Session == session {
		return nil
	}
	if session == uuid.Nil {
		return ErrDelegatedToken
	}
	return redisstore.ErrUnknownSession
}

// WithinReach narrows a list of transactions to the session of a delegated token.
func (c Caller) WithinReach(q redisstore.Query) (redisstore.Query, error) {
	if c.Delegated == nil {
		return q, nil
	}
	if q.Session == uuid.Nil {
		q.Session = c.Delegated.Session
	}
	return q, c.MayActIn(q.Session)
}

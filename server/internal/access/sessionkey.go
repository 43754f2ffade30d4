package access

import (
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

// neverExpires is the expiry of a session key, which has none: it ends with its session.
var neverExpires = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// heldByKey returns a session key as the access token that scripts take it for.
func heldByKey(key token.SessionKey) redisstore.AccessToken {
	return redisstore.AccessToken{Organization: key.Organization, Agent: key.Agent, Family: key.ID, Session: key.Session}
}

// newSessionKey returns a session key like an access token of this service. It names no scopes: those of its session count.
func newSessionKey(text string, held *redisstore.AccessToken, issuer string) *CachedToken {
	access := token.Access{Organization: held.Organization, Agent: held.Agent, Family: held.Family, Client: held.Agent}
	return &CachedToken{
		Access:   access,
		text:     text,
		Caller:   Caller{Caller: redisstore.Caller{Token: held}, Expires: neverExpires},
		identity: newIdentity(access),

		issuer:    issuer,
		forIssuer: true,
	}
}

// NewSessionKey returns the text of a session key of the organization. It is the same each time.
func (g *Guard) NewSessionKey(organization uuid.UUID, k redisstore.SessionKey) (string, error) {
	keys, err := g.Keys()
	if err != nil {
		return "", err
	}
	return keys.FormatSessionKey(token.SessionKey{ID: k.ID, Session: k.Session, Agent: k.Agent, Organization: organization}), nil
}

// OwnSession returns the session of a session key, uuid.Nil for any other caller.
func (c Caller) OwnSession() uuid.UUID {
	if c.Token.IsSessionKey() {
		return c.Token.Session
	}
	return uuid.Nil
}

// admitSessionKey refuses an operation on anything but the key's session. Which session a transaction or a lease belongs to, the store
// reads anyway and holds against the key.
func (g *Guard) admitSessionKey(ctx *fasthttp.RequestCtx, c Caller) error {
	switch reachOf(ctx).key {
	case reachesNothing, reachesIdentity:
		return g.OutOfReach(ctx, c, ErrSessionKeyOnly)
	case reachesSession:
		id, err := web.PathID(ctx)
		if err != nil {
			return err
		}
		return g.OutOfReach(ctx, c, c.MayActIn(id))
	}
	return nil
}

// OutOfReach returns a refusal for the caller's reach; for a session key that is not live, why it is not: a delegated token has been
// checked before. No refusal stays none.
func (g *Guard) OutOfReach(ctx *fasthttp.RequestCtx, c Caller, refusal error) error {
	if refusal == nil || !c.Token.IsSessionKey() {
		return refusal
	}
	return g.Store.OutOfReach(web.ReadContext(ctx), *c.Token, refusal)
}

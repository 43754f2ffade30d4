package pages

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

// agentCallRoute is the route of IdentifyAgent, in metrics and logs.
const agentCallRoute = "agent"

// agentBytes is how much memory a call of the gateway reserves: its answers are small, and many callers may come at once.
const agentBytes = 2 * web.SmallAnswer

// AgentIdentity is what the credential of an agent says.
type AgentIdentity struct {
	Organization uuid.UUID
	Agent        uuid.UUID
	Session      uuid.UUID // the only one that it reaches: of a session key, and of a delegated token; otherwise zero
}

type agentIdentityKey struct{}

// IdentifyAgent says whose an access token or a session key is, if this service made it for itself. It needs no store, so the credential
// may have been revoked: what is done with it finds that out. A Reply that is no success says why the identity is zero.
func (h *Host) IdentifyAgent(c Call, read func(Reply) error) (who AgentIdentity, err error) {
	c.Method, c.Path = fasthttp.MethodGet, "/"
	err = h.CallWith(c, func(ctx *fasthttp.RequestCtx) {
		ctx.SetUserValue(agentIdentityKey{}, &who)
		h.identifyAgent(ctx)
	}, read)
	return who, err
}

// CallWith is Call for a client that waits elsewhere, at the gateway, and with this handler of the API.
func (h *Host) CallWith(c Call, answer fasthttp.RequestHandler, read func(Reply) error) error {
	return h.callAlone(new(fasthttp.RequestCtx), c, agentBytes, answer, read)
}

// CallAlone is CallWith for the API as it is.
func (h *Host) CallAlone(c Call, read func(Reply) error) error { return h.CallWith(c, h.api, read) }

// agentIdentity answers IdentifyAgent.
func (h *Host) agentIdentity(ctx *fasthttp.RequestCtx) error {
	access, err := h.guard.IssuedToken(ctx)
	if err != nil {
		return err
	}
	*ctx.UserValue(agentIdentityKey{}).(*AgentIdentity) = AgentIdentity{access.Organization, access.Agent, access.Caller.Token.Session}
	return nil
}

package kernel

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

const (
	ActorKey        = "key"
	ActorAgent      = "agent"
	actorSessionKey = "session_key"
	actorTime       = "time"
	actorGateway    = "gateway"
)

// AuditAs returns what scripts need for the audit trail: the cap on an agent's events, the kind of caller, and the request.
func (s *Core) AuditAs(ctx context.Context, who string) redisclient.Joined {
	request := auditedRequest(ctx)
	if request == noRequest {
		return redisclient.Joined{s.TrailKept, actorTime, ""}
	}
	return redisclient.Joined{s.TrailKept, who, request}
}

// noRequest is the id of no request.
const noRequest = " "

// ByTime returns a context for what is done because its time has come, not for a request.
func ByTime(ctx context.Context) context.Context { return WithRequestID(ctx, noRequest) }

// Audit is AuditAs for an actor.
func (s *Core) Audit(ctx context.Context, act Actor) redisclient.Joined {
	switch act.Family {
	case "":
		return s.AuditAs(ctx, ActorKey)
	case gatewayFamily:
		return s.AuditAs(ctx, actorGateway)
	}
	if id := act.family(); IsSessionKeyID(id) {
		return redisclient.Joined{s.TrailKept, actorSessionKey, auditedRequest(ctx) + " " + id.String()}
	}
	return s.AuditAs(ctx, ActorAgent)
}

// requestContext says for the audit trail which request an operation belongs to.
type requestContext struct {
	context.Context
	audited string // the id of the request, and behind it who acts with a delegated token, or the session key. No id contains a space
}

type requestKey struct{}

// Value implements context.Context.
func (c requestContext) Value(key any) any {
	if key == (requestKey{}) {
		return c.audited
	}
	return c.Context.Value(key)
}

// WithRequestID returns a context for the operations of one request.
func WithRequestID(ctx context.Context, id string) context.Context { return requestContext{ctx, id} }

// WithActor is WithRequestID for a request that this agent makes with a delegated token: the audit trail of the token's agent
// names it.
func WithActor(ctx context.Context, id string, actor uuid.UUID) context.Context {
	return requestContext{ctx, id + " " + actor.String()}
}

func auditedRequest(ctx context.Context) string {
	if own, ok := ctx.(requestContext); ok { // most are, and need no copy of the text
		return own.audited
	}
	audited, _ := ctx.Value(requestKey{}).(string)
	return audited
}

// RequestID returns the id of the request that the context is for, "" for none.
func RequestID(ctx context.Context) string {
	id, _, _ := strings.Cut(auditedRequest(ctx), " ")
	return id
}

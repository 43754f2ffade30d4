package client

import (
	"context"
	"net/http"
)

// SuspendAgent suspends an agent at once: until it is resumed, it gets no tokens, charges nothing, begins nothing and leases
// nothing. What it has begun and leased may still be settled, and its sessions' time runs on. The reason, of at most 500
// characters, is for people; empty: none. Suspending it again keeps the first time and reason.
func (o *Organization) SuspendAgent(ctx context.Context, id, reason string) (AgentInfo, error) {
	return decoded[AgentInfo](ctx, o.caller, withReason(agentPath(id)+"/suspend", reason))
}

// ResumeAgent lets a suspended agent go on. An agent that is not suspended stays as it is.
func (o *Organization) ResumeAgent(ctx context.Context, id, reason string) (AgentInfo, error) {
	return decoded[AgentInfo](ctx, o.caller, withReason(agentPath(id)+"/resume", reason))
}

// SuspendAllAgents suspends every agent of the organization, as SuspendAgent does, and returns how many live agents are suspended
// then. After an error it may be repeated. Agents that are created later are not suspended.
func (o *Organization) SuspendAllAgents(ctx context.Context, reason string) (int64, error) {
	var answer struct {
		Suspended int64 `json:"suspended"`
	}
	err := o.caller.do(ctx, ofAllAgents("suspend", reason), &answer)
	return answer.Suspended, err
}

// ResumeAllAgents resumes every agent of the organization, by whichever key it was suspended, and returns how many live agents are not suspended
// then. After an error it may be repeated.
func (o *Organization) ResumeAllAgents(ctx context.Context) (int64, error) {
	var answer struct {
		Resumed int64 `json:"resumed"`
	}
	err := o.caller.do(ctx, ofAllAgents("resume", ""), &answer)
	return answer.Resumed, err
}

// SuspendSession suspends a session and its descendants at once, as SuspendAgent does an agent. The session must be active.
func (o *Organization) SuspendSession(ctx context.Context, id, reason string) (SessionInfo, error) {
	return decoded[SessionInfo](ctx, o.caller, withReason(sessionPath(id)+"/suspend", reason))
}

// ResumeSession lets a suspended session go on. A session that is not suspended stays as it is.
func (o *Organization) ResumeSession(ctx context.Context, id, reason string) (SessionInfo, error) {
	return decoded[SessionInfo](ctx, o.caller, withReason(sessionPath(id)+"/resume", reason))
}

// withReason returns a POST that is idempotent by its nature, with a reason for people; empty: none.
func withReason(path, reason string) call {
	body := struct {
		Reason string `json:"reason,omitzero"`
	}{reason}
	return call{method: http.MethodPost, path: path, body: body, semantics: idempotent}
}

// ofAllAgents is withReason for all agents of the organization.
func ofAllAgents(what, reason string) call {
	body := struct {
		All    bool   `json:"all"`
		Reason string `json:"reason,omitzero"`
	}{true, reason}
	return call{method: http.MethodPost, path: "/v1/agents/" + what, body: body, semantics: idempotent}
}

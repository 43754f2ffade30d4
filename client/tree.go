package client

import (
	"cmp"
	"context"
	"net/http"
)

// SessionTree is a session with its descendants.
type SessionTree struct {
	SessionInfo
	Children []SessionTree `json:"children"`
	// ChildrenTruncated: some children are missing, because a tree is read with at most 1,000 sessions. To see them, read the tree
	// of this session.
	ChildrenTruncated bool `json:"children_truncated,omitzero"`
}

// CreateChild creates a child session: a part of this session's budget, for an agent of the organization. An empty AgentID in the
// params means this agent. Its limits, scopes and lifetime lie within those of this session, which set them aside. MaxActions and
// MaxValue left out are the service's defaults, or what this session has left if that is less. What the child does not use comes back
// when it is over. The agent needs the scope sessions:delegate.
//
// A child beyond this session is a *LimitReached with the limit: max_actions, max_value_usd, max_committed_usd, max_lease_seconds,
// max_depth (8) or max_open_children (1,000). Scopes beyond this session's are an *InsufficientScope.
func (s *Session) CreateChild(ctx context.Context, p SessionParams) (SessionInfo, error) {
	p.ParentSessionID = s.id
	p.AgentID = cmp.Or(p.AgentID, s.agent)
	return s.caller.createSession(ctx, p)
}

// Tree reads the session with its descendants.
func (s *Session) Tree(ctx context.Context) (SessionTree, error) {
	return decoded[SessionTree](ctx, s.caller, call{method: http.MethodGet, path: sessionPath(s.id) + "/tree", most: maxTree})
}

// SessionTree reads a session with its descendants.
func (o *Organization) SessionTree(ctx context.Context, id string) (SessionTree, error) {
	return o.session(id).Tree(ctx)
}

// maxTree bounds the response with a tree, in bytes.
const maxTree = 16 << 20

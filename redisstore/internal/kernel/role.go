package kernel

import "remit/internal/redisclient"

// Role says what an API key may do. Each role may do what those before it may.
type Role string

// The roles, from the least to the most. Where an operation needs a role, "" is Admin.
const (
	Viewer   Role = "viewer"   // read everything that contains no credential
	Operator Role = "operator" // also run and stop: sessions, suspensions, revocations, rollbacks
	Admin    Role = "admin"    // also agents, secrets, keys, budgets, webhooks, trusted issuers
)

// ParseRole returns the role of this name, and whether there is one.
func ParseRole(name string) (Role, bool) {
	switch r := Role(name); r {
	case Viewer, Operator, Admin:
		return r, true
	}
	return "", false
}

// Rank is the role as scripts compare it (lua/block/api_key.lua).
func (r Role) Rank() string {
	switch r {
	case Viewer:
		return "1"
	case Operator:
		return "2"
	}
	return "3"
}

// roleOf is the inverse of rank.
func roleOf(rank string) (_ Role, valid bool) {
	for _, r := range []Role{Viewer, Operator, Admin} {
		if r.Rank() == rank {
			return r, true
		}
	}
	return "", false
}

// RoleAt reads a role.
func RoleAt(r *redisclient.Reply, i int) Role {
	role, valid := roleOf(r.Text(i))
	if !valid && r.Err == nil {
		r.Err = redisclient.ErrReply
	}
	return role
}

// RoleError refuses an API key whose role may not do this.
type RoleError struct{ Required Role } // the least role that may

func (e *RoleError) Error() string { return "the API key's role may not do this" }

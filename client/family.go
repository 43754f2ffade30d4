package client

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// Family is all refresh tokens that descend from one exchange of an agent's secret.
type Family struct {
	ID         string    `json:"family_id"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// Families yields an agent's live families, newest first. A family that no client of yours opened may be a thief's.
func (o *Organization) Families(ctx context.Context, agentID string) iter.Seq2[Family, error] {
	return list[Family](ctx, o.caller, agentPath(agentID)+"/families", perPage)
}

// RevokeFamily ends a family at once, with its access tokens. Revoking it again has no effect.
func (o *Organization) RevokeFamily(ctx context.Context, agentID, familyID string) error {
	var revoked struct{}
	return o.caller.do(ctx, call{method: http.MethodDelete, path: familyPath(agentID, familyID), semantics: idempotent}, &revoked)
}

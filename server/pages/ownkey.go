package pages

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// KeyIdentity is what a page may know of the API key that signed in. It is the body of the Reply to Identify and
// SignIn.
type KeyIdentity struct {
	Organization uuid.UUID       `json:"organization_id"`
	Name         string          `json:"organization_name"`
	Key          uuid.UUID       `json:"key_id"` // of the first key, the organization's
	Role         redisstore.Role `json:"role"`
	Replaced     bool            `json:"replaced"` // by a rotation; the key is in its grace time
}

// keyIdentity answers Identify.
func (h *Host) keyIdentity(ctx *fasthttp.RequestCtx) error {
	key, err := access.OrganizationKey(ctx)
	if err != nil {
		return err
	}
	own, err := h.store.OwnKey(web.RequestContext(ctx), key)
	if err != nil {
		return err
	}
	return web.Answer(ctx, KeyIdentity{key.Organization, own.Organization, own.ID, own.Role, own.Replaced})
}

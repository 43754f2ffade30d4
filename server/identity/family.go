package identity

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) familyRoutes(r *web.Routes) {
	r.Get("/v1/agents/{id}/families", redisstore.Viewer, access.ByKeyAt(h.listFamilies))
	r.Delete("/v1/agents/{id}/families/{family_id}", redisstore.Operator, access.ByKeyAt(h.endFamily))
}

// FamilyAnswer is a refresh family in a response.
type FamilyAnswer struct {
	ID       uuid.UUID     `json:"family_id"`
	Created  web.Timestamp `json:"created_at"`
	LastUsed web.Timestamp `json:"last_used_at"`
	Expires  web.Timestamp `json:"expires_at"`
}

// listFamilies returns a page of an agent's refresh token families.
func (h *Handlers) listFamilies(ctx *fasthttp.RequestCtx, key redisstore.APIKey, agent uuid.UUID) error {
	query, err := web.ReadQuery(ctx, nil)
	if err != nil {
		return err
	}
	page, err := h.Store.Families(web.RequestContext(ctx), key, agent, query)
	return web.AnswerPage(ctx, familyOf, page, err)
}

func familyOf(f redisstore.Family) FamilyAnswer {
	return FamilyAnswer{f.ID, web.Timestamp(f.Created), web.Timestamp(f.LastUsed), web.Timestamp(f.Expires)}
}

// endFamily revokes a refresh token family of an agent, with its access tokens.
func (h *Handlers) endFamily(ctx *fasthttp.RequestCtx, key redisstore.APIKey, agent uuid.UUID) error {
	family, err := web.PathIDNamed(ctx, "family_id")
	if err != nil {
		return err
	}
	if err := web.Decode(ctx, &web.Nothing{}); err != nil {
		return err
	}
	if err := h.Store.EndFamily(web.RequestContext(ctx), key, agent, family); err != nil {
		return err
	}
	h.Guard.Metrics.FamiliesRevoked.Inc()
	return web.Answer(ctx, access.RevokedTokenAnswer{Revoked: true})
}

package server

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (s *Server) familyRoutes(r *web.Routes) {
	r.Get("/v1/agents/{id}/families", redisstore.Viewer, s.listFamilies)
	r.Delete("/v1/agents/{id}/families/{family_id}", redisstore.Operator, s.endFamily)
}

type familyAnswer struct {
	ID       uuid.UUID     `json:"family_id"`
	Created  web.Timestamp `json:"created_at"`
	LastUsed web.Timestamp `json:"last_used_at"`
	Expires  web.Timestamp `json:"expires_at"`
}

// listFamilies returns a page of an agent's refresh token families.
func (s *Server) listFamilies(ctx *fasthttp.RequestCtx) error {
	key, agent, err := access.KeyAndID(ctx)
	if err != nil {
		return err
	}
	query, err := web.ReadQuery(ctx, nil)
	if err != nil {
		return err
	}
	page, err := s.store.Families(web.RequestContext(ctx), key, agent, query)
	if err != nil {
		return err
	}
	families := make([]familyAnswer, len(page.Items))
	for i, f := range page.Items {
		families[i] = familyAnswer{f.ID, web.Timestamp(f.Created), web.Timestamp(f.LastUsed), web.Timestamp(f.Expires)}
	}
	web.AnnounceNext(ctx, page.Next)
	return web.Answer(ctx, families)
}

// endFamily revokes a refresh token family of an agent, with its access tokens.
func (s *Server) endFamily(ctx *fasthttp.RequestCtx) error {
	key, agent, err := access.KeyAndID(ctx)
	if err != nil {
		return err
	}
	family, err := web.PathIDNamed(ctx, "family_id")
	if err != nil {
		return err
	}
	if err := web.Decode(ctx, &web.Nothing{}); err != nil {
		return err
	}
	if err := s.store.EndFamily(web.RequestContext(ctx), key, agent, family); err != nil {
		return err
	}
	s.guard.Metrics.FamiliesRevoked.Inc()
	return web.Answer(ctx, access.RevokedTokenAnswer{Revoked: true})
}

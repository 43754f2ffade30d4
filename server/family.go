package server

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

func (s *Server) familyRoutes(r *routes) {
	r.get("/v1/agents/{id}/families", redisstore.Viewer, s.listFamilies)
	r.delete("/v1/agents/{id}/families/{family_id}", redisstore.Operator, s.endFamily)
}

type familyAnswer struct {
	ID       uuid.UUID `json:"family_id"`
	Created  timestamp `json:"created_at"`
	LastUsed timestamp `json:"last_used_at"`
	Expires  timestamp `json:"expires_at"`
}

// listFamilies returns a page of an agent's refresh token families.
func (s *Server) listFamilies(ctx *fasthttp.RequestCtx) error {
	key, agent, err := keyAndID(ctx)
	if err != nil {
		return err
	}
	query, err := readQuery(ctx, nil)
	if err != nil {
		return err
	}
	page, err := s.store.Families(requestContext(ctx), key, agent, query)
	if err != nil {
		return err
	}
	families := make([]familyAnswer, len(page.Items))
	for i, f := range page.Items {
		families[i] = familyAnswer{f.ID, timestamp(f.Created), timestamp(f.LastUsed), timestamp(f.Expires)}
	}
	announceNext(ctx, page.Next)
	return answer(ctx, families)
}

// endFamily revokes a refresh token family of an agent, with its access tokens.
func (s *Server) endFamily(ctx *fasthttp.RequestCtx) error {
	key, agent, err := keyAndID(ctx)
	if err != nil {
		return err
	}
	family, err := pathIDNamed(ctx, "family_id")
	if err != nil {
		return err
	}
	if err := decode(ctx, &nothing{}); err != nil {
		return err
	}
	if err := s.store.EndFamily(requestContext(ctx), key, agent, family); err != nil {
		return err
	}
	s.metrics.familiesRevoked.Inc()
	return answer(ctx, revokedTokenAnswer{true})
}

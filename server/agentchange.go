package server

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

type changeAgentRequest struct {
	Name        optional[string]             `json:"name"`
	Description optional[string]             `json:"description"`
	Metadata    optional[jsontext.Value]     `json:"metadata"`
	Scopes      optional[[]string]           `json:"scopes"`
	Limits      optional[agentLimitsRequest] `json:"limits"`
	agentCredentialsRequest
}

func (r *changeAgentRequest) changes(allowPrivate bool) (redisstore.AgentChanges, error) {
	var v validation
	c := r.check(&v, allowPrivate)
	if r.Name.given {
		v.name(r.Name)
		c.Name = &r.Name.value
	}
	if r.Description.given {
		checkDescription(&v, r.Description.value)
		c.Description = &r.Description.value
	}
	if r.Metadata.given {
		metadata := v.object("metadata", r.Metadata, maxMetadata)
		c.Metadata = &metadata
	}
	if r.Scopes.given {
		v.scopes(r.Scopes.value)
		c.Scopes = &r.Scopes.value
	}
	c.Limits = r.Limits.value.changes(&v)
	v.require(c != (redisstore.AgentChanges{}), "", "name at least one of name, description, metadata, scopes, limits, audiences, jwks, jwks_uri and dpop_required")
	return c, v.err()
}

func checkDescription(v *validation, description string) {
	v.require(utf8.RuneCountInString(description) <= maxDescriptionLength, "description", "must have at most 1000 characters")
}

// changeAgent changes an agent. Scopes that it no longer has are refused at once.
func (s *Server) changeAgent(ctx *fasthttp.RequestCtx) error {
	key, id, err := keyAndID(ctx)
	if err != nil {
		return err
	}
	var request changeAgentRequest
	if err := decode(ctx, &request); err != nil {
		return err
	}
	wanted, err := request.changes(s.webhooks.AllowPrivate)
	if err != nil {
		return err
	}
	agent, err := s.store.ChangeAgent(requestContext(ctx), key, id, wanted)
	if err != nil {
		return err
	}
	return answer(ctx, agentWithLimits(agent))
}

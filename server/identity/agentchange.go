package identity

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/web"
)

type changeAgentRequest struct {
	Name        web.Optional[string]             `json:"name"`
	Description web.Optional[string]             `json:"description"`
	Metadata    web.Optional[jsontext.Value]     `json:"metadata"`
	Scopes      web.Optional[[]string]           `json:"scopes"`
	Limits      web.Optional[agentLimitsRequest] `json:"limits"`
	agentCredentialsRequest
}

func (r *changeAgentRequest) changes(allowPrivate bool) (redisstore.AgentChanges, error) {
	var v web.Validation
	c := r.check(&v, allowPrivate)
	if r.Name.Given {
		v.Name(r.Name)
		c.Name = &r.Name.Value
	}
	if r.Description.Given {
		checkDescription(&v, r.Description.Value)
		c.Description = &r.Description.Value
	}
	if r.Metadata.Given {
		metadata := v.Object("metadata", r.Metadata, web.MaxMetadata)
		c.Metadata = &metadata
	}
	if r.Scopes.Given {
		v.Scopes(r.Scopes.Value)
		c.Scopes = &r.Scopes.Value
	}
	c.Limits = r.Limits.Value.changes(&v)
	v.Require(c != (redisstore.AgentChanges{}), "", "name at least one of name, description, metadata, scopes, limits, audiences, jwks, jwks_uri and dpop_required")
	return c, v.Err()
}

func checkDescription(v *web.Validation, description string) {
	v.Require(utf8.RuneCountInString(description) <= web.MaxDescriptionLength, "description", "must have at most 1000 characters")
}

// changeAgent changes an agent. Scopes that it no longer has are refused at once.
func (h *Handlers) changeAgent(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	var request changeAgentRequest
	if err := web.Decode(ctx, &request); err != nil {
		return err
	}
	wanted, err := request.changes(h.AllowPrivate)
	if err != nil {
		return err
	}
	agent, err := h.Store.ChangeAgent(web.RequestContext(ctx), key, id, wanted)
	if err != nil {
		return err
	}
	return web.Answer(ctx, agentWithLimits(agent))
}

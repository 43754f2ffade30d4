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

func (h *Handlers) agentChanges(r *changeAgentRequest) (redisstore.AgentChanges, error) {
	var v web.Validation
	c := r.check(&v, h.AllowPrivate)
	c.Name, c.Description, c.Scopes = r.Name.Pointer(), r.Description.Pointer(), r.Scopes.Pointer()
	if r.Name.Given {
		v.Name(r.Name)
	}
	checkDescription(&v, r.Description.Value)
	if r.Metadata.Given {
		c.Metadata = new(v.Object("metadata", r.Metadata, web.MaxMetadata))
	}
	v.Scopes(r.Scopes.Value)
	c.Limits = r.Limits.Value.changes(&v)
	v.Require(c != (redisstore.AgentChanges{}), "", "name at least one of name, description, metadata, scopes, limits, audiences, jwks, jwks_uri and dpop_required")
	return c, v.Err()
}

func checkDescription(v *web.Validation, description string) {
	v.Require(utf8.RuneCountInString(description) <= web.MaxDescriptionLength, "description", "must have at most 1000 characters")
}

// changeAgent changes an agent. Scopes that it no longer has are refused at once.
func (h *Handlers) changeAgent(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	wanted, err := web.Decoded(ctx, h.agentChanges)
	if err != nil {
		return err
	}
	agent, err := h.Store.ChangeAgent(web.RequestContext(ctx), key, id, wanted)
	return web.AnswerOf(ctx, agentWithLimits, agent, err)
}

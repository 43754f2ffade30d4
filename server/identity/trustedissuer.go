package identity

import (
	"errors"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) trustedIssuerRoutes(r *web.Routes) {
	r.Post("/v1/trusted-issuers", redisstore.Admin, access.ByKey(h.createTrustedIssuer))
	r.Get("/v1/trusted-issuers", redisstore.Viewer, access.ByKey(h.listTrustedIssuers))
	r.Get("/v1/trusted-issuers/{id}", redisstore.Viewer, access.ByKeyAt(h.getTrustedIssuer))
	r.Patch("/v1/trusted-issuers/{id}", redisstore.Admin, access.ByKeyAt(h.changeTrustedIssuer))
	r.Delete("/v1/trusted-issuers/{id}", redisstore.Admin, access.ByKeyAt(h.deleteTrustedIssuer))
}

// createTrustedIssuer makes the organization trust an issuer.
func (h *Handlers) createTrustedIssuer(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	settings, err := web.Decoded(ctx, h.newTrustedIssuer)
	if err != nil {
		return err
	}
	idempotency, err := web.IdempotencyOf(ctx, "create trusted issuer", key.Organization)
	if err != nil {
		return err
	}
	created, err := h.Store.CreateTrustedIssuer(web.RequestContext(ctx), key, settings, idempotency)
	if err != nil {
		return ruleError(err, settings.Rules)
	}
	return web.AnswerCreated(ctx, "/v1/trusted-issuers/"+created.ID.String(), trustedIssuerOf(created))
}

// listTrustedIssuers lists all trusted issuers of the organization.
func (h *Handlers) listTrustedIssuers(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	if err := h.Front.ReserveAnswer(ctx, redisstore.MostTrustedIssuers*mostIssuerBytes); err != nil {
		return err
	}
	all, err := h.Store.TrustedIssuers(web.RequestContext(ctx), key)
	if err != nil {
		return err
	}
	slices.Reverse(all) // newest first
	answers, urls := make([]trustedIssuerAnswer, len(all)), make([]*string, len(all))
	for i, issuer := range all {
		answers[i] = trustedIssuerOf(issuer)
		urls[i] = &answers[i].JWKSURI
	}
	h.hideQueries(ctx, key, urls...)
	return web.Answer(ctx, answers)
}

func (h *Handlers) getTrustedIssuer(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	found, err := h.Store.TrustedIssuer(web.RequestContext(ctx), key, id)
	if err != nil {
		return err
	}
	h.hideQueries(ctx, key, &found.Settings.JWKSURI)
	return web.Answer(ctx, trustedIssuerOf(found))
}

// changeTrustedIssuer changes an issuer's keys, rules or description. From its response on, no token is exchanged by what they were.
func (h *Handlers) changeTrustedIssuer(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	var request changeTrustedIssuerRequest
	if err := web.Decode(ctx, &request); err != nil {
		return err
	}
	wanted, err := request.read(h.AllowPrivate)
	if err != nil {
		return err
	}
	changed, err := h.Store.ChangeTrustedIssuer(web.RequestContext(ctx), key, id, func(settings *redisstore.TrustedIssuerSettings) error {
		request.apply(settings, wanted)
		return nil
	})
	if err != nil {
		return ruleError(err, wanted.Rules)
	}
	return web.Answer(ctx, trustedIssuerOf(changed))
}

func (h *Handlers) deleteTrustedIssuer(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	return web.AnswerNothing(ctx, h.Store.DeleteTrustedIssuer(web.RequestContext(ctx), key, id))
}

// ruleError names the rules whose agents the organization does not have.
func ruleError(err error, rules []redisstore.IssuerRule) error {
	var unknown *redisstore.UnknownAgentsError
	if !errors.As(err, &unknown) {
		return err
	}
	var v web.Validation
	for i, rule := range rules {
		v.Require(!slices.Contains(unknown.Agents, rule.Agent), ruleField(i, "agent_id"), "is not an agent of the organization")
	}
	return v.Err()
}

type trustedIssuerAnswer struct {
	ID          uuid.UUID          `json:"id"`
	Issuer      string             `json:"issuer"`
	JWKSURI     string             `json:"jwks_uri,omitzero"`
	JWKS        jsontext.Value     `json:"jwks,omitzero"`
	Rules       []issuerRuleAnswer `json:"rules"`
	Description string             `json:"description"`
	Created     web.Timestamp      `json:"created_at"`
}

type issuerRuleAnswer struct {
	Agent  uuid.UUID    `json:"agent_id"`
	Claims claimsAnswer `json:"claims"`
}

// claimsAnswer is written in the order of the names: a replay must have the bytes of the first response.
type claimsAnswer map[string]string

func (c claimsAnswer) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string(c), json.Deterministic(true))
}

// mostIssuerBytes is about how much a trusted issuer has in a response.
const mostIssuerBytes = 52 << 10

func trustedIssuerOf(i redisstore.TrustedIssuer) trustedIssuerAnswer {
	rules := make([]issuerRuleAnswer, len(i.Settings.Rules))
	for at, rule := range i.Settings.Rules {
		rules[at] = issuerRuleAnswer{rule.Agent, rule.Claims}
	}
	shown := trustedIssuerAnswer{
		ID: i.ID, Issuer: i.Settings.Issuer, JWKSURI: i.Settings.JWKSURI, Rules: rules,
		Description: i.Settings.Description, Created: web.Timestamp(i.Created()),
	}
	if i.Settings.JWKS != "" {
		shown.JWKS = jsontext.Value(i.Settings.JWKS)
	}
	return shown
}

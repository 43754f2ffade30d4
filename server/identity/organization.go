package identity

import (
	"crypto/subtle"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// Organizations says who may create organizations. The zero value is OrganizationsOpen.
type Organizations struct {
	Creation OrganizationCreation
	// BootstrapToken is the token that OrganizationsToken requires. "" means the one of SetBootstrapHash.
	BootstrapToken string
}

// OrganizationCreation says who may create organizations.
type OrganizationCreation string

// Everyone may create organizations, only callers with the bootstrap token, or no one.
const (
	OrganizationsOpen   OrganizationCreation = "open"
	OrganizationsToken  OrganizationCreation = "token"
	OrganizationsClosed OrganizationCreation = "closed"
)

func (h *Handlers) organizationRoutes(r *web.Routes) {
	r.Post("/v1/organizations", web.NoKey, h.createOrganization)
	r.Get("/v1/organizations/{id}", redisstore.Viewer, ofOwn(h.getOrganization))
	r.Post("/v1/organizations/{id}/api-key/rotate", redisstore.Admin, ofOwn(h.rotateAPIKey))
}

// authorizeCreator refuses callers that may not create organizations. A wrong bootstrap token counts as a failed
// authentication.
func (h *Handlers) authorizeCreator(ctx *fasthttp.RequestCtx) error {
	switch h.Organizations.Creation {
	case OrganizationsOpen, "":
		return nil
	case OrganizationsToken:
		return h.Guard.Authenticate(ctx, access.Credential{Agent: access.BootstrapAgent}, func() error { return h.checkBootstrapToken(ctx) })
	}
	return access.ErrNoNewOrgs
}

// SetBootstrapHash sets the SHA-256 of the bootstrap token, or of a new one. Without it OrganizationsToken allows no
// caller.
func (h *Handlers) SetBootstrapHash(hash [32]byte) { h.bootstrapHash.Store(&hash) }

// checkBootstrapToken compares hashes, so that its time reveals nothing about the token or its length.
func (h *Handlers) checkBootstrapToken(ctx *fasthttp.RequestCtx) error {
	given, found := access.Bearer(ctx)
	if !found || len(given) == 0 {
		return access.ErrNoBootstrap
	}
	presented, wanted := token.Hash(string(given)), h.bootstrapHash.Load()
	if wanted == nil {
		return access.ErrNoBootstrapHash
	}
	if subtle.ConstantTimeCompare(presented[:], wanted[:]) == 0 {
		return access.ErrWrongBootstrap
	}
	return nil
}

type createOrganizationRequest struct {
	Name     web.Optional[string]         `json:"name"`
	Metadata web.Optional[jsontext.Value] `json:"metadata"`
}

// OrganizationAnswer is an organization in a response.
type OrganizationAnswer struct {
	ID       uuid.UUID      `json:"id"`
	Name     string         `json:"name"`
	APIKey   string         `json:"api_key,omitzero"` // in the response to its creation only
	Metadata jsontext.Value `json:"metadata"`
	Created  web.Timestamp  `json:"created_at"`
	Quotas   *Resources     `json:"quotas,omitzero"` // in the response to a read only, like usage
	Usage    *Resources     `json:"usage,omitzero"`
}

// Resources are amounts that an organization holds or may hold: null means no limit.
type Resources struct {
	Agents              *int64 `json:"agents"`
	OpenSessions        *int64 `json:"open_sessions"`
	PendingTransactions *int64 `json:"pending_transactions"`
	RefreshFamilies     *int64 `json:"refresh_families"`
	IdempotencyKeys     *int64 `json:"idempotency_keys"`
	Bytes               *int64 `json:"bytes"`
}

func resourcesOf(amounts map[string]int64, show func(int64) *int64) *Resources {
	return &Resources{
		Agents: show(amounts["agents"]), OpenSessions: show(amounts["open_sessions"]),
		PendingTransactions: show(amounts["pending_transactions"]), RefreshFamilies: show(amounts["refresh_families"]),
		IdempotencyKeys: show(amounts["idempotency_keys"]), Bytes: show(amounts["bytes"]),
	}
}

func quotaShown(quota int64) *int64 {
	if quota == 0 {
		return nil
	}
	return &quota
}

func usageShown(used int64) *int64 { return &used }

// OrganizationOf returns an organization without its key, quotas and usage.
func OrganizationOf(o redisstore.Organization) OrganizationAnswer {
	return OrganizationAnswer{ID: o.ID, Name: o.Name, Metadata: web.MetadataOf(o.Metadata), Created: web.Timestamp(o.Created)}
}

func (h *Handlers) createOrganization(ctx *fasthttp.RequestCtx) error {
	if err := h.authorizeCreation(ctx); err != nil {
		return err
	}
	var request createOrganizationRequest
	if err := web.Decode(ctx, &request); err != nil {
		return err
	}
	var v web.Validation
	v.Name(request.Name)
	metadata := v.Object("metadata", request.Metadata, web.MaxMetadata)
	if err := v.Err(); err != nil {
		return err
	}
	idempotency, err := web.IdempotencyOf(ctx, "create organization", uuid.Nil)
	if err != nil {
		return err
	}
	created, err := h.makeOrganization(ctx, request.Name.Value, metadata, idempotency)
	if err != nil {
		return err
	}
	if !idempotency.IsReplay() {
		h.counted.organizationsCreated.Inc()
	}
	web.KeepFromCaches(ctx)
	return web.AnswerCreated(ctx, "/v1/organizations/"+created.ID.String(), created)
}

// makeOrganization creates an organization with its first API key.
func (h *Handlers) makeOrganization(ctx *fasthttp.RequestCtx, name, metadata string, idempotency *redisstore.Idempotency) (OrganizationAnswer, error) {
	if idempotency != nil {
		return h.makeOrganizationIdempotent(ctx, name, metadata, idempotency)
	}
	id := redisstore.NewRootID()
	apiKey := token.NewAPIKey(id)
	organization, err := h.Store.CreateOrganization(web.RequestContext(ctx), "",
		access.NewKey(id, apiKey), name, metadata, nil)
	created := OrganizationOf(organization)
	created.APIKey = apiKey
	return created, err
}

// makeOrganizationIdempotent is makeOrganization with an idempotency key. The bootstrap token proves who repeats a request.
// When everyone may create organizations there is none, so the idempotency key itself must be a secret: a caller who knows it
// receives the organization's API key.
func (h *Handlers) makeOrganizationIdempotent(ctx *fasthttp.RequestCtx, name, metadata string, idempotency *redisstore.Idempotency) (OrganizationAnswer, error) {
	creator, secret := "", idempotency.Key
	if h.Organizations.Creation == OrganizationsToken {
		given, _ := access.Bearer(ctx) // the bootstrap token, which authorizeCreation has checked
		hash := token.Hash(string(given))
		creator, secret = string(hash[:]), string(given)
	} else if !idempotency.Unguessable() {
		return OrganizationAnswer{}, web.Invalid(web.HeaderIdempotencyKey, web.GuessableKey)
	}
	id := redisstore.NewOrganizationID(creator, idempotency)
	idempotency.Credential, idempotency.Seal = token.NewAPIKey(id), token.NewAnswerSeal(secret, idempotency.Key)
	organization, err := h.Store.CreateOrganization(web.RequestContext(ctx), creator,
		access.NewKey(id, idempotency.Credential), name, metadata, idempotency)
	created := OrganizationOf(organization)
	created.APIKey = idempotency.Credential
	return created, err
}

func (h *Handlers) getOrganization(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	organization, err := h.Store.Organization(web.RequestContext(ctx), key)
	if err != nil {
		return err
	}
	usage, quotas, err := h.Store.OrganizationUsage(web.RequestContext(ctx), key.Organization)
	if err != nil {
		return err
	}
	read := OrganizationOf(organization)
	read.Quotas, read.Usage = resourcesOf(quotas, quotaShown), resourcesOf(usage, usageShown)
	return web.Answer(ctx, read)
}

// ofOwn adapts a handler to a path with the id of an organization. It answers any but the API key's own as unknown.
func ofOwn(h func(*fasthttp.RequestCtx, redisstore.APIKey) error) web.Handler {
	return access.ByKeyAt(func(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
		if id != key.Organization {
			return access.ErrUnknownOrg
		}
		return h(ctx, key)
	})
}

// authorizeCreation refuses callers that may not create organizations, and addresses that have created too many.
func (h *Handlers) authorizeCreation(ctx *fasthttp.RequestCtx) error {
	if err := h.authorizeCreator(ctx); err != nil {
		return err
	}
	limit := h.Creations
	if limit == nil {
		return nil
	}
	left, taken := limit.Allow(h.Front.ClientAddress(ctx))
	limit.WriteHeaders(ctx, left)
	if !taken {
		h.counted.limitedOrganizations.Inc()
		return &web.RateLimited{RetryAfter: left.Reset}
	}
	return nil
}

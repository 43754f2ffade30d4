package server

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

func (s *Server) organizationRoutes(r *web.Routes) {
	r.Post("/v1/organizations", web.NoKey, s.createOrganization)
	r.Get("/v1/organizations/{id}", redisstore.Viewer, s.getOrganization)
	r.Post("/v1/organizations/{id}/api-key/rotate", redisstore.Admin, s.rotateAPIKey)
}

// authorizeCreator refuses callers that may not create organizations. A wrong bootstrap token counts as a failed
// authentication.
func (s *Server) authorizeCreator(ctx *fasthttp.RequestCtx) error {
	switch s.organizations.Creation {
	case OrganizationsOpen, "":
		return nil
	case OrganizationsToken:
		return s.guard.Authenticate(ctx, access.Credential{Agent: access.BootstrapAgent}, func() error { return s.checkBootstrapToken(ctx) })
	}
	return access.ErrNoNewOrgs
}

// SetBootstrapHash sets the SHA-256 of the bootstrap token, or of a new one. Without it OrganizationsToken allows no
// caller.
func (s *Server) SetBootstrapHash(hash [32]byte) { s.bootstrapHash.Store(&hash) }

// checkBootstrapToken compares hashes, so that its time reveals nothing about the token or its length.
func (s *Server) checkBootstrapToken(ctx *fasthttp.RequestCtx) error {
	given, found := access.Bearer(ctx)
	if !found || len(given) == 0 {
		return access.ErrNoBootstrap
	}
	presented, wanted := token.Hash(string(given)), s.bootstrapHash.Load()
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

type organizationAnswer struct {
	ID       uuid.UUID      `json:"id"`
	Name     string         `json:"name"`
	APIKey   string         `json:"api_key,omitzero"` // in the response to its creation only
	Metadata jsontext.Value `json:"metadata"`
	Created  web.Timestamp  `json:"created_at"`
	Quotas   *resources     `json:"quotas,omitzero"` // in the response to a read only, like usage
	Usage    *resources     `json:"usage,omitzero"`
}

// resources are amounts that an organization holds or may hold: null means no limit.
type resources struct {
	Agents              *int64 `json:"agents"`
	OpenSessions        *int64 `json:"open_sessions"`
	PendingTransactions *int64 `json:"pending_transactions"`
	RefreshFamilies     *int64 `json:"refresh_families"`
	IdempotencyKeys     *int64 `json:"idempotency_keys"`
	Bytes               *int64 `json:"bytes"`
}

func resourcesOf(amounts map[string]int64, show func(int64) *int64) *resources {
	return &resources{
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

func organizationOf(o redisstore.Organization) organizationAnswer {
	return organizationAnswer{ID: o.ID, Name: o.Name, Metadata: web.MetadataOf(o.Metadata), Created: web.Timestamp(o.Created)}
}

func (s *Server) createOrganization(ctx *fasthttp.RequestCtx) error {
	if err := s.authorizeCreation(ctx); err != nil {
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
	created, err := s.makeOrganization(ctx, request.Name.Value, metadata, idempotency)
	s.front.ReportReplay(ctx, idempotency)
	if err != nil {
		return err
	}
	if !isReplay(idempotency) {
		s.metrics.organizationsCreated.Inc()
	}
	web.KeepFromCaches(ctx)
	return web.AnswerCreated(ctx, "/v1/organizations/"+created.ID.String(), created)
}

// makeOrganization creates an organization with its first API key.
func (s *Server) makeOrganization(ctx *fasthttp.RequestCtx, name, metadata string, idempotency *redisstore.Idempotency) (organizationAnswer, error) {
	if idempotency != nil {
		return s.makeOrganizationIdempotent(ctx, name, metadata, idempotency)
	}
	id := redisstore.NewRootID()
	apiKey := token.NewAPIKey(id)
	organization, err := s.store.CreateOrganization(web.RequestContext(ctx), "",
		access.NewKey(id, apiKey), name, metadata, nil)
	created := organizationOf(organization)
	created.APIKey = apiKey
	return created, err
}

// makeOrganizationIdempotent is makeOrganization with an idempotency key. The bootstrap token proves who repeats a request.
// When everyone may create organizations there is none, so the idempotency key itself must be a secret: whoever knows it
// receives the organization's API key.
func (s *Server) makeOrganizationIdempotent(ctx *fasthttp.RequestCtx, name, metadata string, idempotency *redisstore.Idempotency) (organizationAnswer, error) {
	creator, secret := "", idempotency.Key
	if s.organizations.Creation == OrganizationsToken {
		given, _ := access.Bearer(ctx) // the bootstrap token, which authorizeCreation has checked
		hash := token.Hash(string(given))
		creator, secret = string(hash[:]), string(given)
	} else if !idempotency.Unguessable() {
		return organizationAnswer{}, web.Invalid(web.HeaderIdempotencyKey, web.GuessableKey)
	}
	id := redisstore.NewOrganizationID(creator, idempotency)
	idempotency.Credential, idempotency.Seal = token.NewAPIKey(id), token.NewAnswerSeal(secret, idempotency.Key)
	organization, err := s.store.CreateOrganization(web.RequestContext(ctx), creator,
		access.NewKey(id, idempotency.Credential), name, metadata, idempotency)
	created := organizationOf(organization)
	created.APIKey = idempotency.Credential
	return created, err
}

func (s *Server) getOrganization(ctx *fasthttp.RequestCtx) error {
	key, err := ownOrganization(ctx)
	if err != nil {
		return err
	}
	organization, err := s.store.Organization(web.RequestContext(ctx), key)
	if err != nil {
		return err
	}
	usage, quotas, err := s.store.OrganizationUsage(web.RequestContext(ctx), key.Organization)
	if err != nil {
		return err
	}
	read := organizationOf(organization)
	read.Quotas, read.Usage = resourcesOf(quotas, quotaShown), resourcesOf(usage, usageShown)
	return web.Answer(ctx, read)
}

// ownOrganization returns the API key of a request whose path names the key's own organization. Any other organization is
// answered as unknown.
func ownOrganization(ctx *fasthttp.RequestCtx) (redisstore.APIKey, error) {
	key, err := access.OrganizationKey(ctx)
	if err != nil {
		return redisstore.APIKey{}, err
	}
	id, err := web.PathID(ctx)
	if err != nil {
		return redisstore.APIKey{}, err
	}
	if id != key.Organization {
		return redisstore.APIKey{}, access.ErrUnknownOrg
	}
	return key, nil
}

// authorizeCreation refuses callers that may not create organizations, and addresses that have created too many.
func (s *Server) authorizeCreation(ctx *fasthttp.RequestCtx) error {
	if err := s.authorizeCreator(ctx); err != nil {
		return err
	}
	limit := s.limits.organizations
	if limit == nil {
		return nil
	}
	left, taken := limit.Allow(s.front.ClientAddress(ctx))
	limit.WriteHeaders(ctx, left)
	if !taken {
		s.metrics.limitedOrganizations.Inc()
		return &web.RateLimited{RetryAfter: left.Reset}
	}
	return nil
}

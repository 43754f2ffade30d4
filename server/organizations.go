package server

import (
	"crypto/subtle"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/token"
)

func (s *Server) organizationRoutes(r *routes) {
	r.post("/v1/organizations", s.createOrganization)
	r.get("/v1/organizations/{id}", s.getOrganization)
	r.post("/v1/organizations/{id}/api-key/rotate", s.rotateAPIKey)
}

// admitCreator refuses who may not create organizations. Whoever guesses bootstrap tokens counts as one who guesses
// secrets.
func (s *Server) admitCreator(ctx *fasthttp.RequestCtx) error {
	switch s.organizations.Creation {
	case OrganizationsOpen, "":
		return nil
	case OrganizationsToken:
		return s.authenticate(ctx, credential{agent: bootstrapAgent}, func() error { return s.checkBootstrapToken(ctx) })
	}
	return errNoNewOrgs
}

// SetBootstrapHash gives the server the SHA-256 of the bootstrap token, or that of a new one. Until then nobody creates an
// organization by a token.
func (s *Server) SetBootstrapHash(hash [32]byte) { s.bootstrapHash.Store(&hash) }

// checkBootstrapToken compares hashes, so that the time it takes tells nothing of the token, nor of its length.
func (s *Server) checkBootstrapToken(ctx *fasthttp.RequestCtx) error {
	given, found := bearer(ctx)
	if !found || len(given) == 0 {
		return errNoBootstrap
	}
	presented, wanted := token.Hash(string(given)), s.bootstrapHash.Load()
	if wanted == nil {
		return errNoBootstrapHash
	}
	if subtle.ConstantTimeCompare(presented[:], wanted[:]) == 0 {
		return errWrongBootstrap
	}
	return nil
}

type createOrganizationRequest struct {
	Name     optional[string]         `json:"name"`
	Metadata optional[jsontext.Value] `json:"metadata"`
}

type organizationAnswer struct {
	ID       uuid.UUID      `json:"id"`
	Name     string         `json:"name"`
	APIKey   string         `json:"api_key,omitzero"` // in the answer to its creation only
	Metadata jsontext.Value `json:"metadata"`
	Created  timestamp      `json:"created_at"`
	Quotas   *resources     `json:"quotas,omitzero"` // only when it is read, as usage
	Usage    *resources     `json:"usage,omitzero"`
}

// resources are amounts of what an organization holds, or may hold: null for any number.
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
	return organizationAnswer{ID: o.ID, Name: o.Name, Metadata: metadataOf(o.Metadata), Created: timestamp(o.Created)}
}

func (s *Server) createOrganization(ctx *fasthttp.RequestCtx) error {
	if err := s.admitOrganization(ctx); err != nil {
		return err
	}
	var request createOrganizationRequest
	if err := decode(ctx, &request); err != nil {
		return err
	}
	var v validation
	v.name(request.Name)
	metadata := v.object("metadata", request.Metadata, maxMetadata)
	if err := v.err(); err != nil {
		return err
	}
	once, err := once(ctx, "create organization", uuid.Nil)
	if err != nil {
		return err
	}
	created, err := s.makeOrganization(ctx, request.Name.value, metadata, once)
	s.noteReplay(ctx, once)
	if err != nil {
		return err
	}
	if !isReplay(once) {
		s.counts.organizationsCreated.Inc()
	}
	keepFromCaches(ctx)
	return answerCreated(ctx, "/v1/organizations/"+created.ID.String(), created)
}

// makeOrganization creates an organization with its first API key.
func (s *Server) makeOrganization(ctx *fasthttp.RequestCtx, name, metadata string, once *redisstore.Idempotency) (organizationAnswer, error) {
	if once != nil {
		return s.makeOrganizationOnce(ctx, name, metadata, once)
	}
	id := redisstore.NewRootID()
	apiKey := token.NewAPIKey(id)
	organization, err := s.store.CreateOrganization(forRequest(ctx),
		redisstore.APIKey{Organization: id, Hash: token.Hash(apiKey)}, name, metadata)
	created := organizationOf(organization)
	created.APIKey = apiKey
	return created, err
}

// makeOrganizationOnce is makeOrganization with an idempotency key. The bootstrap token shows who asks again. Where anybody
// may create organizations there is none, so the idempotency key itself must be a secret: whoever knew it would be given
// the organization's API key.
func (s *Server) makeOrganizationOnce(ctx *fasthttp.RequestCtx, name, metadata string, once *redisstore.Idempotency) (organizationAnswer, error) {
	creator, secret := "", once.Key
	if s.organizations.Creation == OrganizationsToken {
		given, _ := bearer(ctx) // the bootstrap token: the creator was admitted by it
		hash := token.Hash(string(given))
		creator, secret = string(hash[:]), string(given)
	} else if !once.Unguessable() {
		return organizationAnswer{}, invalid(headerIdempotencyKey, guessableKey)
	}
	id := redisstore.NewOrganizationID(creator, once)
	once.Credential, once.Seal = token.NewAPIKey(id), token.NewAnswerSeal(secret, once.Key)
	organization, err := s.store.CreateOrganizationOnce(forRequest(ctx), creator,
		redisstore.APIKey{Organization: id, Hash: token.Hash(once.Credential)}, name, metadata, once)
	created := organizationOf(organization)
	created.APIKey = once.Credential
	return created, err
}

func (s *Server) getOrganization(ctx *fasthttp.RequestCtx) error {
	key, err := ownOrganization(ctx)
	if err != nil {
		return err
	}
	organization, err := s.store.Organization(forRequest(ctx), key)
	if err != nil {
		return err
	}
	usage, quotas, err := s.store.OrganizationUsage(forRequest(ctx), key.Organization)
	if err != nil {
		return err
	}
	read := organizationOf(organization)
	read.Quotas, read.Usage = resourcesOf(quotas, quotaShown), resourcesOf(usage, usageShown)
	return answer(ctx, read)
}

type rotatedKeyAnswer struct {
	APIKey          string    `json:"api_key"`
	PreviousExpires timestamp `json:"previous_expires_at"`
}

func (s *Server) rotateAPIKey(ctx *fasthttp.RequestCtx) error {
	key, err := ownOrganization(ctx)
	if err != nil {
		return err
	}
	grace, err := decodeGrace(ctx, defaultKeyGrace)
	if err != nil {
		return err
	}
	apiKey := token.NewAPIKey(key.Organization)
	once, err := onceByKey(ctx, "rotate key", key.Organization, apiKey)
	if err != nil {
		return err
	}
	previousExpires, err := s.store.RotateAPIKeyOnce(forRequest(ctx), key, token.Hash(apiKey), grace, once)
	s.noteReplay(ctx, once)
	if err != nil {
		return err
	}
	keepFromCaches(ctx)
	return answer(ctx, rotatedKeyAnswer{answered(apiKey, once), timestamp(previousExpires)})
}

// ownOrganization returns the key of a request whose path names the key's own organization; every other is unknown to
// it, as far as it may know.
func ownOrganization(ctx *fasthttp.RequestCtx) (redisstore.APIKey, error) {
	key, err := organizationKey(ctx)
	if err != nil {
		return redisstore.APIKey{}, err
	}
	id, err := pathID(ctx)
	if err != nil {
		return redisstore.APIKey{}, err
	}
	if id != key.Organization {
		return redisstore.APIKey{}, errUnknownOrg
	}
	return key, nil
}

// admitOrganization refuses who may not create an organization, and addresses that have created too many.
func (s *Server) admitOrganization(ctx *fasthttp.RequestCtx) error {
	if err := s.admitCreator(ctx); err != nil {
		return err
	}
	limit := s.limits.organizations
	if limit == nil {
		return nil
	}
	left, taken := limit.take(s.clientAddress(ctx))
	limit.tell(ctx, left)
	if !taken {
		s.counts.limitedOrganizations.Inc()
		return &rateLimited{left.reset}
	}
	return nil
}

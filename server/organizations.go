package server

import (
	"crypto/subtle"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/token"
)

// Organizations says who may create organizations. The zero value is OrganizationsOpen.
type Organizations struct {
	Creation OrganizationCreation
	// BootstrapToken is the token that OrganizationsToken asks for. "": that of SetBootstrapHash.
	BootstrapToken string
}

// OrganizationCreation is one way to decide who may create organizations.
type OrganizationCreation string

// Who may create organizations: everybody; who holds the bootstrap token; nobody.
const (
	OrganizationsOpen   OrganizationCreation = "open"
	OrganizationsToken  OrganizationCreation = "token"
	OrganizationsClosed OrganizationCreation = "closed"
)

// admitCreator refuses who may not create organizations. Whoever guesses bootstrap tokens counts as one who guesses
// secrets.
func (s *Server) admitCreator(ctx *fasthttp.RequestCtx) error {
	switch s.organizations.Creation {
	case OrganizationsOpen, "":
		return nil
	case OrganizationsToken:
		if err := s.admitAuth(ctx); err != nil {
			return err
		}
		err := s.checkBootstrapToken(ctx)
		s.countAuth(ctx, err)
		return err
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
}

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
	id := redisstore.NewRootID()
	apiKey := token.NewAPIKey(id)
	organization, err := s.store.CreateOrganization(forRequest(ctx),
		redisstore.APIKey{Organization: id, Hash: token.Hash(apiKey)}, request.Name.value, metadata)
	if err != nil {
		return err
	}
	s.counts.organizationsCreated.Inc()
	created := organizationOf(organization)
	created.APIKey = apiKey
	keepFromCaches(ctx)
	return answerCreated(ctx, "/v1/organizations/"+id.String(), created)
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
	return answer(ctx, organizationOf(organization))
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
	grace, err := decodeGrace(ctx)
	if err != nil {
		return err
	}
	apiKey := token.NewAPIKey(key.Organization)
	previousExpires, err := s.store.RotateAPIKey(forRequest(ctx), key, token.Hash(apiKey), grace)
	if err != nil {
		return err
	}
	keepFromCaches(ctx)
	return answer(ctx, rotatedKeyAnswer{apiKey, timestamp(previousExpires)})
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

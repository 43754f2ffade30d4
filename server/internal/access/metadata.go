package access

import (
	"slices"

	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/server/internal/web"
)

// MetadataRoutes registers the documents that tell clients of the endpoints (RFC 8414, OpenID Connect Discovery).
func (g *Guard) MetadataRoutes(r *web.Routes) {
	r.Get("/.well-known/oauth-authorization-server", web.NoKey, g.metadata)
	r.Get("/.well-known/openid-configuration", web.NoKey, g.metadata)
}

// ServerMetadata is an RFC 8414 document, with the members that OpenID Connect Discovery 1.0 §3 requires: many libraries and clouds
// look for an issuer's keys at its path only, and refuse a document without them.
type ServerMetadata struct {
	Issuer                      string   `json:"issuer"`
	AuthorizationEndpoint       string   `json:"authorization_endpoint"`
	TokenEndpoint               string   `json:"token_endpoint"`
	RevocationEndpoint          string   `json:"revocation_endpoint"`
	IntrospectionEndpoint       string   `json:"introspection_endpoint"`
	JWKS                        string   `json:"jwks_uri"`
	GrantTypes                  []string `json:"grant_types_supported"`
	ResponseTypes               []string `json:"response_types_supported"` // none: there is no authorization by users
	TokenAuthMethods            []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuthMethods       []string `json:"revocation_endpoint_auth_methods_supported"`
	IntrospectionAuthMethods    []string `json:"introspection_endpoint_auth_methods_supported"`
	TokenAuthAlgorithms         []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	RevocationAuthAlgorithms    []string `json:"revocation_endpoint_auth_signing_alg_values_supported"`
	IntrospectionAuthAlgorithms []string `json:"introspection_endpoint_auth_signing_alg_values_supported"`
	ProofAlgorithms             []string `json:"dpop_signing_alg_values_supported"`

	SubjectTypes      []string `json:"subject_types_supported"`               // public: sub is the same for all clients
	SigningAlgorithms []string `json:"id_token_signing_alg_values_supported"` // of access tokens: there are no ID tokens
}

// metadata lists the OAuth endpoints. All of them lie below the issuer, which is the service's own URL.
func (g *Guard) metadata(ctx *fasthttp.RequestCtx) error {
	keys, err := g.Keys()
	if err != nil {
		return err
	}
	issuer := keys.Issuer()
	methods, algorithms := []string{"client_secret_basic", "client_secret_post", "private_key_jwt"}, token.AssertionAlgorithms()
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=300")
	return web.Answer(ctx, ServerMetadata{
		Issuer: issuer,
		// No grant here uses it, so RFC 8414 §2 lets it be absent. But the SDKs of the Model Context Protocol refuse a
		// document without it, even for client credentials. The endpoint refuses every request.
		AuthorizationEndpoint:       issuer + "/oauth2/authorize",
		TokenEndpoint:               issuer + "/oauth2/token",
		RevocationEndpoint:          issuer + "/oauth2/revoke",
		IntrospectionEndpoint:       issuer + "/oauth2/introspect",
		JWKS:                        issuer + "/.well-known/jwks.json",
		GrantTypes:                  []string{"client_credentials", "refresh_token", grantJWTBearer, grantTokenExchange},
		ResponseTypes:               []string{},
		TokenAuthMethods:            append(slices.Clone(methods), "none"), // none: for jwt-bearer
		RevocationAuthMethods:       methods,
		IntrospectionAuthMethods:    methods,
		TokenAuthAlgorithms:         algorithms,
		RevocationAuthAlgorithms:    algorithms,
		IntrospectionAuthAlgorithms: algorithms,
		ProofAlgorithms:             token.ProofAlgorithms(),
		SubjectTypes:                []string{"public"},
		SigningAlgorithms:           keys.SigningAlgorithms(),
	})
}

package server

import (
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/server/internal/web"
)

const resourceMetadataPath = "/.well-known/oauth-protected-resource"

func (s *Server) resourceMetadataRoutes(r *web.Routes) {
	r.Get(resourceMetadataPath, web.NoKey, s.resourceMetadata)
}

// resourceMetadata is an RFC 9728 document: this service as a resource, for which it issues the tokens itself.
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	JWKS                 string   `json:"jwks_uri"` // of the keys that sign checkpoints of events, among others
	BearerMethods        []string `json:"bearer_methods_supported"`
	ProofAlgorithms      []string `json:"dpop_signing_alg_values_supported"`
	Documentation        string   `json:"resource_documentation"`
}

func (s *Server) resourceMetadata(ctx *fasthttp.RequestCtx) error {
	keys, err := s.keys()
	if err != nil {
		return err
	}
	issuer := keys.Issuer()
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=300")
	return web.Answer(ctx, resourceMetadata{
		Resource: issuer, AuthorizationServers: []string{issuer}, JWKS: issuer + "/.well-known/jwks.json",
		BearerMethods: []string{"header"}, ProofAlgorithms: token.ProofAlgorithms(), Documentation: issuer + "/docs",
	})
}

// metadataFor returns where the metadata of the resource is that the request is for, "" for none: this service, or behind a proxy
// the resource that the proxy names.
func (s *Server) metadataFor(ctx *fasthttp.RequestCtx) string {
	if route := web.InfoOf(ctx).Route; route == web.VerifyPath || route == web.AuthorizePath {
		var v web.Validation
		return metadataURL(parameterOf(&v, ctx, "audience", "X-Audience"))
	}
	keys, err := s.keys()
	if err != nil {
		return ""
	}
	return keys.Issuer() + resourceMetadataPath
}

// metadataURL returns where a resource's metadata is (RFC 9728 §3.1), "" for what is no URL of a host.
func metadataURL(resource string) string {
	if checkAudience(resource) != nil {
		return ""
	}
	parsed, err := url.Parse(resource)
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return ""
	}
	path := parsed.EscapedPath()
	if path == "/" {
		path = ""
	}
	if parsed.ForceQuery || parsed.RawQuery != "" {
		path += "?" + parsed.RawQuery
	}
	return strings.ToLower(parsed.Scheme) + "://" + parsed.Host + resourceMetadataPath + path
}

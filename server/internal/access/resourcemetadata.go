package access

import (
	"iter"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/server/internal/web"
)

const resourceMetadataPath = "/.well-known/oauth-protected-resource"

// ResourceMetadataRoutes registers RFC 9728.
func (g *Guard) ResourceMetadataRoutes(r *web.Routes) {
	r.Get(resourceMetadataPath, web.NoKey, g.resourceMetadata)
}

// ResourceMetadata is an RFC 9728 document: this service as a resource, for which it issues the tokens itself.
type ResourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	JWKS                 string   `json:"jwks_uri"` // of the keys that sign checkpoints of events, among others
	BearerMethods        []string `json:"bearer_methods_supported"`
	ProofAlgorithms      []string `json:"dpop_signing_alg_values_supported"`
	Documentation        string   `json:"resource_documentation"`
}

func (g *Guard) resourceMetadata(ctx *fasthttp.RequestCtx) error {
	keys, err := g.Keys()
	if err != nil {
		return err
	}
	issuer := keys.Issuer()
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=300")
	return web.Answer(ctx, ResourceMetadata{
		Resource: issuer, AuthorizationServers: []string{issuer}, JWKS: issuer + "/.well-known/jwks.json",
		BearerMethods: []string{"header"}, ProofAlgorithms: token.ProofAlgorithms(), Documentation: issuer + "/docs",
	})
}

// metadataFor returns where the metadata of the resource is that the request is for, "" for none: this service, or behind a proxy
// the resource that the proxy names.
func (g *Guard) metadataFor(ctx *fasthttp.RequestCtx) string {
	if route := web.InfoOf(ctx).Route; route == web.VerifyPath || route == web.AuthorizePath {
		var v web.Validation
		return metadataURL(ParameterOf(&v, ctx, "audience", "X-Audience"))
	}
	keys, err := g.Keys()
	if err != nil {
		return ""
	}
	return keys.Issuer() + resourceMetadataPath
}

// metadataURL returns where a resource's metadata is (RFC 9728 §3.1), "" for what is no URL of a host.
func metadataURL(resource string) string {
	if CheckAudience(resource) != nil {
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

// ParameterOf returns a parameter from the query if it is there, even empty, or else from a header. It refuses a
// parameter given twice, because one of the two could be the client's.
func ParameterOf(v *web.Validation, ctx *fasthttp.RequestCtx, name, header string) string {
	value, times := []byte(nil), 0
	if !web.BelowSubrequestPath(ctx.URI().PathOriginal()) {
		value, times = countValues(ctx.QueryArgs().All(), name)
	}
	if times == 0 {
		value, times = countValues(ctx.Request.Header.All(), header)
	}
	if times == 0 {
		return ""
	}
	v.Require(times == 1, name, "is given twice")
	v.Require(len(value) > 0, name, "must not be empty")
	return string(value)
}

// countValues returns the first value under a name, and how many there are. The name of a header must be in canonical form: to
// bring it into that form, as PeekAll does, costs more than the search.
func countValues(all iter.Seq2[[]byte, []byte], name string) (first []byte, times int) {
	for key, value := range all {
		if string(key) != name {
			continue
		}
		if times == 0 {
			first = value
		}
		times++
	}
	return first, times
}

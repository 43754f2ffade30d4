package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

const resourceMetadataPath = "/.well-known/oauth-protected-resource"

// ProtectedResource is a server of yours that takes the service's access tokens, such as an MCP server (RFC 9728).
type ProtectedResource struct {
	// Resource is the server's own URL, which tokens for it have as their audience: https://tools.example.com/mcp. Clients that ask for
	// tokens name it exactly as it is here.
	Resource             string
	AuthorizationServers []string // issuers of tokens for it: that of the service
	Scopes               []string // which it uses; empty: not said
	Name                 string   // for people; empty: not said
	Documentation        string   // a URL; empty: not said
}

// Metadata returns the document that MetadataURL serves.
func (r ProtectedResource) Metadata() json.RawMessage {
	text, _ := json.Marshal(struct { // strings
		Resource   string      `json:"resource"`
		Servers    []string    `json:"authorization_servers,omitzero"`
		Scopes     []string    `json:"scopes_supported,omitzero"`
		Methods    []string    `json:"bearer_methods_supported"`
		Algorithms []Algorithm `json:"dpop_signing_alg_values_supported"`
		Name       string      `json:"resource_name,omitzero"`
		Page       string      `json:"resource_documentation,omitzero"`
	}{
		r.Resource, r.AuthorizationServers, r.Scopes, []string{"header"}, []Algorithm{ES256, ES384, EdDSA, RS256, PS256},
		r.Name, r.Documentation,
	})
	return text
}

// MetadataURL returns where clients look for the document: before the path of the resource (RFC 9728 §3.1).
func (r ProtectedResource) MetadataURL() string {
	address, err := url.Parse(r.Resource)
	if err != nil || address.Host == "" {
		return ""
	}
	return address.Scheme + "://" + address.Host + resourceMetadataPath + strings.TrimSuffix(address.EscapedPath(), "/")
}

// Challenge returns the WWW-Authenticate header of an answer with 401 or 403. err is that of Verify; nil: the request had no token.
func (r ProtectedResource) Challenge(err error) string {
	var scope *InsufficientScope
	var proof *InvalidProof
	var text string
	switch {
	case errors.As(err, &scope):
		text = `Bearer error="insufficient_scope", scope="` + scope.RequiredScope + `", `
	case errors.As(err, &proof):
		text = `DPoP error="` + proof.Code + `", algs="ES256 ES384 EdDSA RS256 PS256", `
	case err != nil:
		text = `Bearer error="invalid_token", `
	default:
		text = `Bearer `
	}
	return text + `resource_metadata="` + r.MetadataURL() + `"`
}

// Handler serves the document, and passes to next only requests with a token for this resource that the service confirms.
// VerifiedFrom tells next whose it is. A request with a DPoP proof needs this server among the service's trusted proxies.
func (r ProtectedResource) Handler(c *Client, next http.Handler) http.Handler {
	document := r.Metadata()
	var path string
	if address, err := url.Parse(r.MetadataURL()); err == nil {
		path = address.Path
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == path && (request.Method == http.MethodGet || request.Method == http.MethodHead) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "public, max-age=3600")
			_, _ = w.Write(document) // the client is gone
			return
		}
		verified, err := r.verify(request, c)
		if err != nil {
			r.refuse(w, err)
			return
		}
		next.ServeHTTP(w, request.WithContext(context.WithValue(request.Context(), verifiedKey{}, verified)))
	})
}

type verifiedKey struct{}

// VerifiedFrom returns whose token a request had that came through ProtectedResource.Handler.
func VerifiedFrom(ctx context.Context) (Verified, bool) {
	verified, ok := ctx.Value(verifiedKey{}).(Verified)
	return verified, ok
}

// errNoToken is the error of a request without a token.
var errNoToken = errors.New("no access token")

func (r ProtectedResource) verify(request *http.Request, c *Client) (Verified, error) {
	given := request.Header.Values("Authorization")
	if len(given) != 1 {
		return Verified{}, errNoToken
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	o := VerifyOptions{Audience: r.Resource}
	switch {
	case strings.EqualFold(scheme, "Bearer"):
	case strings.EqualFold(scheme, "DPoP"):
		base, err := url.Parse(r.Resource)
		if err != nil {
			return Verified{}, err
		}
		proofs := request.Header.Values("DPoP")
		if len(proofs) != 1 || proofs[0] == "" { // RFC 9449 §4.3
			return Verified{}, errNoToken
		}
		o.Proof, o.Method = proofs[0], request.Method
		o.URL = base.Scheme + "://" + base.Host + request.URL.RequestURI()
	default:
		return Verified{}, errNoToken
	}
	return c.VerifyWith(request.Context(), strings.TrimSpace(token), o)
}

// refuse answers a request whose token was not confirmed.
func (r ProtectedResource) refuse(w http.ResponseWriter, err error) {
	text, status := "the access token is not valid here", http.StatusUnauthorized
	switch {
	case errors.Is(err, errNoToken):
		err, text = nil, "an access token is needed"
	case errors.As(err, new(*InsufficientScope)):
		text, status = "the access token lacks a scope", http.StatusForbidden
	case !errors.Is(err, ErrUnauthorized): // the token may be good
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the access token cannot be checked now", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("WWW-Authenticate", r.Challenge(err))
	http.Error(w, text, status)
}

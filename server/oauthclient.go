package server

import (
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/token"
)

// readForm reads the parameters. RFC 6749 §3.2 forbids repeated ones and has unknown ones ignored; an empty one counts
// as absent.
func readForm(ctx *fasthttp.RequestCtx) (url.Values, error) {
	header := &ctx.Request.Header
	if countHeader(header.RawHeaders(), fasthttp.HeaderContentType) > 1 || len(header.Peek(fasthttp.HeaderContentEncoding)) > 0 {
		return nil, &oauthError{"invalid_request", "the body must have one Content-Type and no Content-Encoding"}
	}
	mediaType, _, _ := strings.Cut(string(header.ContentType()), ";")
	if !strings.EqualFold(strings.TrimSpace(mediaType), "application/x-www-form-urlencoded") {
		return nil, &oauthError{"invalid_request", "the body must be application/x-www-form-urlencoded"}
	}
	form, err := url.ParseQuery(string(ctx.Request.Body()))
	if err != nil {
		return nil, &oauthError{"invalid_request", "the body is not well-formed"}
	}
	for _, values := range form {
		if len(values) > 1 {
			return nil, &oauthError{"invalid_request", "a parameter is given twice"}
		}
	}
	return form, nil
}

// readClient reads the client's credentials from the Authorization header or else the form (RFC 6749 §2.3.1). A secret
// that no client can have is refused before the store is asked.
func readClient(ctx *fasthttp.RequestCtx, form url.Values) (oauthClient, error) {
	id, secret := form.Get("client_id"), form.Get("client_secret")
	if header := string(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)); header != "" {
		if secret != "" {
			return oauthClient{}, &oauthError{"invalid_request", "send the client's credentials once"}
		}
		basicID, basicSecret, ok := readBasic(header)
		if !ok || id != "" && id != basicID {
			return oauthClient{}, redisstore.ErrInvalidCredentials
		}
		id, secret = basicID, basicSecret
	}
	agent, ok := parseID(id)
	if !ok || token.CheckAgentSecret(secret) != nil {
		return oauthClient{agent: agent}, redisstore.ErrInvalidCredentials
	}
	return oauthClient{agent, secret}, nil
}

// readBasic reads HTTP Basic credentials, both halves of which are form-encoded first (RFC 6749 §2.3.1).
func readBasic(header string) (id, secret string, ok bool) {
	scheme, encoded, _ := strings.Cut(header, " ")
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !strings.EqualFold(scheme, "Basic") || err != nil {
		return "", "", false
	}
	first, second, found := strings.Cut(string(raw), ":")
	id, idErr := url.QueryUnescape(first)
	secret, secretErr := url.QueryUnescape(second)
	return id, secret, found && idErr == nil && secretErr == nil
}

func scopesIn(form url.Values) ([]string, error) {
	scopes := strings.Fields(form.Get("scope"))
	var v validation
	if v.scopes(scopes); v.err() != nil {
		return nil, &oauthError{"invalid_scope", "scope is not a list of distinct scopes"}
	}
	return scopes, nil
}

// oauthClient is a client as it presents itself.
type oauthClient struct {
	agent  uuid.UUID
	secret string
}

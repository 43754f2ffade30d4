package gateway

import (
	"net/http"
	"strings"

	"github.com/google/uuid"
	"remit/server/pages"
)

const (
	headerSession   = "X-Remit-Session"
	headerRemaining = "X-Remit-Remaining-Value-Usd"
)

// caller is who calls, by one credential.
type caller struct {
	credential string // a session key or an access token; never passed on
	pages.AgentIdentity
	session uuid.UUID // in which it calls
}

// credentialHeaders are those by which the providers' clients send a key.
var credentialHeaders = []string{"Authorization", "X-Api-Key", "Api-Key"}

// credentialOf returns the only credential of a request.
func credentialOf(h http.Header) (string, *refusal) {
	var given []string
	for _, name := range credentialHeaders {
		for _, value := range h.Values(name) {
			if name == "Authorization" {
				scheme, token, _ := strings.Cut(value, " ")
				if !strings.EqualFold(scheme, "Bearer") {
					return "", refuse(http.StatusUnauthorized, "invalid_token", "Authorization must be Bearer, with a session key or an access token of Remit")
				}
				value = token
			}
			given = append(given, strings.TrimSpace(value))
		}
	}
	switch {
	case len(given) > 1:
		return "", refuse(http.StatusBadRequest, "invalid_request",
			"the request has more than one of Authorization, x-api-key and api-key: send one, with a session key or an access token of Remit")
	case len(given) == 0 || given[0] == "":
		return "", refuse(http.StatusUnauthorized, "missing_credentials",
			"set the API key of the client to a session key or an access token of Remit")
	case strings.HasPrefix(given[0], "rmk_"):
		return "", refuse(http.StatusUnauthorized, "invalid_token",
			"this is the API key of an organization, which no agent should have: use a session key (rmsk_…) or an access token")
	case strings.HasPrefix(given[0], "rmr_"):
		return "", refuse(http.StatusUnauthorized, "invalid_token", "this is a refresh token: use the access token that came with it")
	case strings.HasPrefix(given[0], "sk-"):
		return "", refuse(http.StatusUnauthorized, "invalid_token",
			"this is a provider's key, which the gateway has already: use a session key (rmsk_…) or an access token of Remit")
	}
	return given[0], nil
}

// identify returns who calls. Whether the credential is still live, the begin of a call decides.
func (g *Gateway) identify(r *http.Request, requestID string) (caller, *refusal) {
	credential, refused := credentialOf(r.Header)
	if refused != nil {
		return caller{}, refused
	}
	call := pages.Call{Token: credential, RequestID: requestID}
	who, err := g.host.IdentifyAgent(call, func(reply pages.Reply) error {
		refused = refusalOf(reply)
		return nil
	})
	switch {
	case err != nil:
		return caller{}, internalError(err)
	case refused != nil && refused.code == "invalid_token":
		refused.detail += "; set the API key of the client to a session key, or to an access token that is bound to no key and has the issuer in aud"
		return caller{}, refused
	case refused != nil:
		return caller{}, refused
	}
	session, refused := sessionOf(r.Header, who.Session)
	return caller{credential, who, session}, refused
}

// sessionOf returns the session that a request names, or else the only one that its credential reaches.
func sessionOf(h http.Header, own uuid.UUID) (uuid.UUID, *refusal) {
	named := h.Values(headerSession)
	if len(named) == 0 && own != uuid.Nil {
		return own, nil
	}
	if len(named) == 0 {
		return uuid.Nil, refuse(http.StatusBadRequest, "invalid_request",
			"an access token needs the header "+headerSession+" with the session's id; a session key needs none")
	}
	id, err := uuid.Parse(named[0])
	if err != nil || len(named) > 1 || len(named[0]) != 36 || id == uuid.Nil {
		return uuid.Nil, refuse(http.StatusBadRequest, "invalid_request", headerSession+" must be the id of a session, once")
	}
	return id, nil
}

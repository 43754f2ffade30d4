package sdk

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// serveIdentity plays the service. A proof's nonce must be the one that it gives.
func serveIdentity(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	var member struct {
		Agent string `json:"agent_id"`
		Name  string `json:"name"`
		Token string `json:"token"`
	}
	_ = json.Unmarshal(body, &member)
	switch place := r.Method + " " + r.URL.Path; {
	case place == "GET /.well-known/oauth-authorization-server":
		io.WriteString(w, `{"issuer":"https://remit.example","token_endpoint":"https://remit.example/oauth2/token"}`)
	case place == "POST /oauth2/token" && strings.HasSuffix(form.Get("grant_type"), ":jwt-bearer"):
		io.WriteString(w, `{"access_token":"workload","token_type":"Bearer","expires_in":3600,"scope":"read pay"}`)
	case place == "POST /oauth2/token":
		io.WriteString(w, `{"access_token":"by-key","refresh_token":"r","token_type":"Bearer","expires_in":3600,"scope":""}`)
	case place == "POST /v1/auth/token" && member.Agent == "skewed":
		w.Header().Set("Date", "Fri, 21 Nov 2025 09:19:32 GMT")
		problem(w, 400, "invalid_dpop_proof")
	case place == "POST /v1/auth/token" && nonceOf(r) != "n-1":
		w.Header().Set("DPoP-Nonce", "n-1")
		problem(w, 400, "use_dpop_nonce")
	case place == "POST /v1/auth/token":
		io.WriteString(w, `{"access_token":"bound","refresh_token":"r","token_type":"DPoP","expires_in":3600}`)
	case place == "GET /v1/auth/verify" && r.URL.Query().Get("scope") == "pay":
		problem(w, 403, "insufficient_scope")
	case place == "GET /v1/auth/verify":
		h := w.Header()
		h.Set("X-Agent-Id", "a1")
		h.Set("X-Org-Id", "o1")
		h.Set("X-Actor-Id", "a0")
		h.Set("X-Cnf-Jkt", r.Header.Get("DPoP"))
		h.Set("X-Scopes", strings.Join([]string{
			strings.Split(r.Header.Get("Authorization"), " ")[0], r.URL.Query().Get("audience"), r.Header.Get("X-Forwarded-Method"),
			r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-Host"), r.Header.Get("X-Forwarded-Uri"),
		}, " "))
	case place == "POST /v1/auth/introspect":
		io.WriteString(w, introspected[member.Token])
	case strings.Contains(place, "/v1/agents"):
		io.WriteString(w, strings.Replace(contractAgent, `"id":"a1"`, `"id":"a1","jwks_uri":"https://keys.example/jwks"`, 1))
	case strings.Contains(place, "/v1/trusted-issuers"):
		io.WriteString(w, `{"id":"i1","issuer":"https://ci.example","jwks_uri":"https://ci.example/jwks","rules":[],"created_at":`+moment+`}`)
	default:
		http.Error(w, "the test has no response for "+place, http.StatusNotImplemented)
	}
}

// introspected is what the service says of a token, by the token.
var introspected = map[string]string{
	"delegated": `{"active":true,"agent_id":"a3","org_id":"o1","sub":"a3","scope":"read","exp":1763716772,"aud":["https://i","urn:b"],"cnf":{"jkt":"k"},"session_id":"s","act":{"sub":"a2","act":{"sub":"a1"}}}`,
	"plain":     `{"active":true,"agent_id":"a1","org_id":"o1","sub":"a1","scope":"read","exp":1763716772,"aud":"urn:b"}`,
	"nonsense":  `{"active":false}`,
}

func problem(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	io.WriteString(w, `{"code":"`+code+`","detail":"words","request_id":"r-1","required_scope":"pay"}`)
}

func nonceOf(r *http.Request) string {
	var claims struct{ Nonce string }
	if parts := strings.Split(r.Header.Get("DPoP"), "."); len(parts) == 3 {
		text, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(text, &claims)
	}
	return claims.Nonce
}

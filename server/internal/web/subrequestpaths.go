package web

import "bytes"

// Proxies (nginx auth_request, Traefik ForwardAuth, Envoy ext_authz) send a subrequest here before they forward a request,
// and understand 2xx, 401 and 403. Envoy keeps the method of the request and appends its path: whatever follows these
// paths, and the query there, comes from the client and is ignored.
const (
	VerifyPath    = "/v1/auth/verify"
	AuthorizePath = "/v1/auth/authorize"
)

// BelowSubrequestPath reports whether a proxy has appended a path.
func BelowSubrequestPath(path []byte) bool {
	return bytes.HasPrefix(path, []byte(VerifyPath+"/")) || bytes.HasPrefix(path, []byte(AuthorizePath+"/"))
}

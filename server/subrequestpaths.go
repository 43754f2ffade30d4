package server

import "bytes"

// Proxies (nginx auth_request, Traefik ForwardAuth, Envoy ext_authz) send a subrequest here before they forward a request,
// and understand 2xx, 401 and 403. Envoy keeps the method of the request and appends its path: whatever follows these
// paths, and the query there, comes from the client and is ignored.
const (
	verifyPath    = "/v1/auth/verify"
	authorizePath = "/v1/auth/authorize"
)

// belowSubrequestPath reports whether a proxy has appended a path.
func belowSubrequestPath(path []byte) bool {
	return bytes.HasPrefix(path, []byte(verifyPath+"/")) || bytes.HasPrefix(path, []byte(authorizePath+"/"))
}

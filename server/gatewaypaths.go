package server

import "bytes"

// Gateways (nginx auth_request, Traefik ForwardAuth, Envoy ext_authz) ask here before they let a request through, and
// understand 2xx, 401 and 403. Envoy appends the path of the request it asks about, and keeps its method; what stands
// behind the gateway paths, and the query there, is the client's and is not looked at.
const (
	verifyPath    = "/v1/auth/verify"
	authorizePath = "/v1/auth/authorize"
)

// behindGatewayPath says whether the path was appended by a gateway.
func behindGatewayPath(path []byte) bool {
	return bytes.HasPrefix(path, []byte(verifyPath+"/")) || bytes.HasPrefix(path, []byte(authorizePath+"/"))
}

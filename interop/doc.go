// Package interop proves that OAuth clients and gateways in the wild work with the service unchanged. It is tests alone:
// they build the program, run it as its users do, and put in front of it what others have written: Go's oauth2 and
// go-oidc, the JavaScript libraries oauth4webapi, jose and the Model Context Protocol's SDK, and nginx with the
// configuration of deploy/nginx. What docs/oauth.md shows is run as it stands there.
//
// node, npm and nginx must be installed (make test sees to it); without them the tests fail, except under -short.
package interop

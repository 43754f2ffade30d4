// Package interop tests that existing OAuth clients and proxies work with the service unchanged. The tests build and run the
// program like its users, and call it with third-party software: Go's oauth2 and go-oidc, the JavaScript libraries
// openid-client, oauth4webapi, jose, the Model Context Protocol's SDK (client and server) and Auth0's JWT middleware for Express,
// and nginx with the configuration of deploy/nginx. They also run the examples of docs/oauth.md.
//
// The tests need node, npm and nginx, which make test installs. Without them they fail, except under -short.
package interop

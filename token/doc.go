// Package token knows the form of every credential that Remit gives out, and nothing of HTTP or Redis.
//
//	rmk_…  API key of an organization        secret.go
//	rms_…  secret of an agent                secret.go
//	rmb_…  bootstrap token                   secret.go
//	rmr_…  refresh token, derived by HMAC    refresh.go
//	a JWT  access token, RFC 9068 typ        jwt.go
//
// API keys and secrets are random and kept as SHA-256 only. Refresh tokens are kept nowhere: a Keyring derives each
// from its agent, family and generation, so a dump of the store yields none. Access tokens are signed by the first of
// the keyring's signing keys and verified by any of them.
package token

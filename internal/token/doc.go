// Package token defines the format of every credential that Remit issues or takes. It knows neither HTTP nor Redis.
//
//	rmk_…  API key of an organization        secret.go
//	rms_…  secret of an agent                secret.go
//	rmb_…  bootstrap token                   secret.go
//	rmr_…  refresh token, derived by HMAC    refresh.go
//	a JWT  access token, RFC 9068 typ        jwt.go
//	a JWT  assertion of another party        assertion.go, jwk.go
//
// API keys and secrets are random and stored only as SHA-256. Refresh tokens are not stored: a Keyring derives each one from
// its agent, family and generation, so a dump of the store contains none. The first of the keyring's signing keys signs
// access tokens, and each of them verifies.
package token

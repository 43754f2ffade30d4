// Package token defines the format of every credential that Remit issues or takes. It knows neither HTTP nor Redis.
//
//	rmk_…  API key of an organization        secret.go
//	rms_…  secret of an agent                secret.go
//	rmb_…  bootstrap token                   secret.go
//	rmr_…  refresh token, derived by HMAC    refresh.go
//	rmsk_… session key, derived by HMAC      sessionkey.go
//	a JWT  access token, RFC 9068 typ        jwt.go
//	a JWT  assertion of another party        assertion.go, jwk.go
//
// API keys and secrets are random and stored only as SHA-256. Refresh tokens and session keys are not stored: a Keyring derives each
// from the ids in it, and a refresh token's generation, so a dump of the store contains none. The first of the keyring's signing keys signs
// access tokens, and each of them verifies.
package token

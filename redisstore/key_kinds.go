package redisstore

// KeyKind is what a key is for.
type KeyKind string

// The keys that are stored in Redis unless the service has key files.
const (
	SigningKeys KeyKind = "signing" // of access tokens
	RefreshKeys KeyKind = "refresh" // of refresh tokens
)

package redisstore

// KeyKind is what a key is for.
type KeyKind string

// The keys that are kept in Redis unless the service is given files.
const (
	SigningKeys KeyKind = "signing" // of access tokens
	RefreshKeys KeyKind = "refresh" // of refresh tokens
)

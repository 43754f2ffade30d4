package kernel

// KeyKind is the use of a key.
type KeyKind string

// The kinds of keys that Redis stores unless the service reads them from files.
const (
	SigningKeys KeyKind = "signing" // of access tokens
	TokenKeys   KeyKind = "token"   // of refresh tokens; see --token-key
)

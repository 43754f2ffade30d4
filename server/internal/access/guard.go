package access

import (
	"sync/atomic"
	"time"

	"remit/internal/jwksfetch"
	"remit/redisstore"
	"remit/server/internal/web"
)

// Guard finds out who calls, and serves the endpoints of tokens. It refuses credentials with ErrNoKeyring until SetKeyring.
type Guard struct {
	Config

	Front    *web.Front
	Tokens   atomic.Pointer[TokenCache] // with the keyring; nil before SetKeyring
	keyReads keyReads
}

// Config configures a guard.
type Config struct {
	Store      *redisstore.Store
	Clock      func() time.Time
	FailedAuth *AuthLimiter       // nil for no limit
	ProofHosts ProofHosts         // nil for every host
	KeySets    *jwksfetch.Fetcher // nil for none
	OverTLS    bool               // clients speak TLS with this server
	Metrics    *Metrics
}

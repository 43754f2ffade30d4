package server

import (
	"sync/atomic"
	"time"

	"remit/internal/jwksfetch"
	"remit/redisstore"
	"remit/server/internal/web"
)

// guard finds out who calls, and serves the endpoints of tokens. It refuses credentials with errNoKeyring until SetKeyring.
type guard struct {
	guardConfig

	front    *web.Front
	tokens   atomic.Pointer[tokenCache] // with the keyring; nil before SetKeyring
	keyReads keyReads
}

// guardConfig configures a guard.
type guardConfig struct {
	store      *redisstore.Store
	clock      func() time.Time
	failedAuth *authLimiter       // nil for no limit
	proofHosts ProofHosts         // nil for every host
	keySets    *jwksfetch.Fetcher // nil for none
	overTLS    bool               // clients speak TLS with this server
	metrics    *accessMetrics
}

package server

import (
	"crypto/tls"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"remit/internal/jwksfetch"
	"remit/redisstore"
	"remit/server/conn"
	"remit/server/internal/web"
)

// Server answers HTTP. It answers 503 to whatever needs a key until SetKeyring.
type Server struct {
	front         *web.Front
	store         *redisstore.Store
	clock         func() time.Time
	defaults      SessionDefaults
	tokens        atomic.Pointer[tokenCache] // with the keyring; nil before SetKeyring
	keyReads      keyReads
	limits        limits
	proofHosts    ProofHosts // nil for every host
	tls           *tls.Config
	organizations Organizations
	webhooks      Webhooks
	keySets       *jwksfetch.Fetcher       // nil for none
	bootstrapHash atomic.Pointer[[32]byte] // SHA-256 of the token that creates organizations
	open          *conn.Set
	ready         readiness
	pulse         time.Duration // of event streams
	waiters       *conn.WaiterLimit
	metrics       *serviceMetrics
	metricsApart  bool
	scrapes       scrapes
	metricsHTTP   *fasthttp.Server // serves ServeMetrics

	api              fasthttp.RequestHandler // every request of the API
	pages            *pages                  // nil for none
	identify, signIn fasthttp.RequestHandler // inside the process only, for the pages
}

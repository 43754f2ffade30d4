package server

import (
	"crypto/tls"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"
	"remit/internal/jwksfetch"
	"remit/redisstore"
	"remit/server/conn"
	"remit/server/internal/web"
)

// Server answers HTTP. It answers 503 to whatever needs a key until SetKeyring.
type Server struct {
	store         *redisstore.Store
	log           *slog.Logger
	clock         func() time.Time
	tracer        trace.Tracer
	restarts      bool           // begins a new trace with each request
	accessLog     *web.AccessLog // nil for none
	defaults      SessionDefaults
	tokens        atomic.Pointer[tokenCache] // with the keyring; nil before SetKeyring
	keyReads      keyReads
	requests      web.RequestIDs
	limits        limits
	proxies       conn.Proxies
	proofHosts    ProofHosts // nil for every host
	tls           *tls.Config
	organizations Organizations
	webhooks      Webhooks
	keySets       *jwksfetch.Fetcher       // nil for none
	bootstrapHash atomic.Pointer[[32]byte] // SHA-256 of the token that creates organizations
	open          *conn.Set
	drain         conn.Drain
	ready         readiness
	pulse         time.Duration // of event streams
	waiters       *conn.WaiterLimit
	bodies        conn.Bodies
	unwritten     *conn.Pool // for large responses that are being written
	shed          shedLog
	metrics       *serviceMetrics
	metricsApart  bool
	scrapes       scrapes
	http          *fasthttp.Server
	metricsHTTP   *fasthttp.Server // serves ServeMetrics

	api              fasthttp.RequestHandler // every request of the API
	pages            *pages                  // nil for none
	identify, signIn fasthttp.RequestHandler // inside the process only, for the pages
}

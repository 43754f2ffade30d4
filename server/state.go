package server

import (
	"crypto/tls"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/conn"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// Server answers HTTP. It answers 503 to whatever needs a key until SetKeyring.
type Server struct {
	guard         *access.Guard
	front         *web.Front
	store         *redisstore.Store
	clock         func() time.Time
	defaults      SessionDefaults
	limits        limits
	tls           *tls.Config
	organizations Organizations
	webhooks      Webhooks
	bootstrapHash atomic.Pointer[[32]byte] // SHA-256 of the token that creates organizations
	open          *conn.Set
	ready         readiness
	pulse         time.Duration // of event streams
	waiters       *conn.WaiterLimit
	metrics       *serviceMetrics
	metricsApart  bool
	scrapes       web.Scrapes
	metricsHTTP   *fasthttp.Server // serves ServeMetrics

	api              fasthttp.RequestHandler // every request of the API
	pages            *pages                  // nil for none
	identify, signIn fasthttp.RequestHandler // inside the process only, for the pages
}

package server

import (
	"crypto/tls"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"
	"remit/redisstore"
	"remit/server/conn"
)

// Server answers HTTP. Until SetKeyring it answers 503 to whatever needs a key.
type Server struct {
	store    *redisstore.Store
	log      *slog.Logger
	tracer   trace.Tracer
	restarts bool // begins each trace anew
	// accessLog is nil when there is none.
	accessLog *accessLog
	defaults  SessionDefaults
	verifier  atomic.Pointer[verifier] // with the keyring
	keyReads  keyReads
	requests  requestIDs
	limits    limits
	proxies   conn.Proxies
	tls       *tls.Config
	// organizations says who may create them.
	organizations Organizations
	bootstrapHash atomic.Pointer[[32]byte] // SHA-256 of the token that creates them
	open          *conn.Set
	drain         drain
	ready         readiness
	pulse         time.Duration // of streams
	waiting       *waiting
	bodies        bodies
	unwritten     *pool // of large answers
	turnedAway    turnedAway
	counts        *counts
	metricsApart  bool
	scrapes       scrapes
	http          *fasthttp.Server
	watchers      *fasthttp.Server // of ServeMetrics
}

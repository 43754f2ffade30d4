package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
	"remit/server"
	"remit/server/budgets"
	"remit/server/conn"
	"remit/server/pages"
)

// Gateway is one instance. Open it, join it to a server in its process, and serve.
type Gateway struct {
	log     *slog.Logger
	source  *source
	host    *pages.Host      // of the server in the process, which decides who calls and what fits
	holder  *budgets.Gateway // of the same
	access  accessLog
	tracer  trace.Tracer // nil: none
	restart bool

	transport *http.Transport
	places    places // of calls, by organization
	arriving  places // of requests whose bodies arrive, by agent
	bodies    *conn.Pool
	answers   *conn.Pool
	waiting   waitingConnections
	parsing   parsing
	metrics   *gatewayMetrics
	http      *http.Server
	secure    *tls.Config // nil: plain HTTP
	most      int         // connections of clients; 0: as the config says
	linger    time.Duration

	calls      context.Context // of those to providers; it ends when a stop has waited long enough
	cut        context.CancelCauseFunc
	background context.Context // of settlements; it ends when no more are tried
	giveUp     context.CancelFunc
	busy       busy // with calls and settlements
	stopping   atomic.Bool
}

// Options say how a gateway logs and traces.
type Options struct {
	Log           *slog.Logger
	AccessLog     server.AccessLog
	Tracer        trace.Tracer // nil: none
	RestartTraces bool         // ignores the trace context of requests
	Connections   int          // of clients, at most; 0: as the config says
}

// Open reads the config and returns a gateway that does not serve yet.
func Open(config string, o Options) (*Gateway, error) {
	s, err := openSource(config, o.Log)
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		log: o.Log, source: s, access: accessLog{log: o.AccessLog.Log, every: o.AccessLog.Every}, tracer: o.Tracer, restart: o.RestartTraces,
		most: o.Connections, linger: lingerTime,
	}
	c := s.current.Load()
	if g.secure, err = g.tlsConfig(c.TLS); err != nil {
		return nil, fmt.Errorf("%s:%d: tls: %w", config, c.tlsLine, err)
	}
	g.transport, g.bodies, g.answers, g.http = newTransport(), newBodies(), newAnswers(), g.newServer()
	g.parsing = newParsing()
	g.places.held, g.arriving.held = map[uuid.UUID]int{}, map[uuid.UUID]int{}
	g.metrics = newMetrics(g.places.len, g.bodies.Reserved)
	g.calls, g.cut = context.WithCancelCause(context.Background())
	g.background, g.giveUp = context.WithCancel(context.Background())
	return g, nil
}

// Join has the gateway ask this server. Call it before Serve.
func (g *Gateway) Join(s *server.Server) { g.host, g.holder = s.Pages(), s.Gateway() }

// Listen returns the address that the config names.
func (g *Gateway) Listen() string { return g.source.current.Load().Listen }

// Scheme returns https if the config has TLS files, else http.
func (g *Gateway) Scheme() string {
	if g.source.current.Load().TLS != nil {
		return "https"
	}
	return "http"
}

func (g *Gateway) isStopping() bool { return g.stopping.Load() }

// ownRoutes are the gateway's own paths, which the server in its process answers.
var ownRoutes = []string{"/healthz", "/readyz", "/metrics"}

// stoppingProblem is the body of /readyz while the gateway stops.
const stoppingProblem = `{"type":"urn:remit:problem:unavailable","title":"Unavailable","status":503,` +
	`"detail":"the gateway is stopping","code":"unavailable"}`

// serveOwn answers a request for the gateway itself.
func (g *Gateway) serveOwn(e *exchange) bool {
	path := e.request.URL.EscapedPath()
	if !slices.Contains(ownRoutes, path) || e.request.Method != http.MethodGet && e.request.Method != http.MethodHead {
		return false
	}
	h := e.writer.Header()
	if path == "/readyz" && g.isStopping() {
		h.Set("Content-Type", "application/problem+json")
		h.Set("Retry-After", "1")
		e.writer.WriteHeader(http.StatusServiceUnavailable)
		_, _ = e.writer.Write([]byte(stoppingProblem))
		return true
	}
	var status int
	var body []byte
	err := g.host.CallAlone(pages.Call{Method: http.MethodGet, Path: path, RequestID: e.id}, func(reply pages.Reply) error {
		status, body = reply.Status, bytes.Clone(reply.Body)
		h.Set("Content-Type", reply.Type)
		if reply.RetryAfter != "" {
			h.Set("Retry-After", reply.RetryAfter)
		}
		return nil
	})
	if err != nil {
		status = http.StatusInternalServerError
	}
	h.Set("Cache-Control", "no-store")
	e.writer.WriteHeader(status)
	_ = e.writing(func() error { // which fails only when the client is gone
		_, err := e.writer.Write(body)
		return err
	})
	return true
}

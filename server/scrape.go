package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/valyala/fasthttp"
)

const watchersGrace = time.Second / 2

var metricsFormat = expfmt.NewFormat(expfmt.TypeTextPlain)

func (s *Server) metricsRoutes(r *routes) {
	r.get("/metrics", s.metrics)
}

// scrapes gathers once for all that wait for a text: nobody needs a credential to ask, and to gather takes a millisecond or
// more. So however many ask at once, no more than one is at work for them, and nobody waits for more than two.
type scrapes struct {
	mu       sync.Mutex
	gathered time.Time // when that of the text began
	plain    []byte    // the text; never written to again, for it is in answers
	packed   []byte    // the same compressed; nil until somebody wants it
}

// text returns what is counted when somebody asks who arrives now, or a moment later.
func (s *scrapes) text(arrived time.Time, from prometheus.Gatherer, packed bool) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gathered.Before(arrived) {
		began := time.Now()
		plain, err := gather(from)
		if err != nil {
			return nil, err
		}
		s.gathered, s.plain, s.packed = began, plain, nil
	}
	if !packed {
		return s.plain, nil
	}
	if s.packed == nil {
		var err error
		if s.packed, err = pack(s.plain); err != nil {
			return nil, err
		}
	}
	return s.packed, nil
}

func gather(from prometheus.Gatherer) ([]byte, error) {
	families, err := from.Gather()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, metricsFormat)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

func pack(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	to := gzip.NewWriter(&packed)
	if _, err := to.Write(text); err != nil {
		return nil, err
	}
	if err := to.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// metrics answers with all that is counted, in the text format of Prometheus.
func (s *Server) metrics(ctx *fasthttp.RequestCtx) error {
	packed := ctx.Request.Header.HasAcceptEncoding("gzip")
	text, err := s.scrapes.text(time.Now(), s.counts.registry, packed)
	if err != nil {
		return err
	}
	header := &ctx.Response.Header
	header.SetContentType(string(metricsFormat))
	keepFromCaches(ctx)
	header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if packed {
		header.SetContentEncoding("gzip")
	}
	ctx.Response.SetBodyRaw(text)
	return nil
}

// ServeMetrics answers /metrics and /healthz, and nothing else, on a listener of their own until Shutdown, by plain HTTP.
// The server must have been told so: see Config.MetricsApart.
func (s *Server) ServeMetrics(accepting net.Listener) error { return s.watchers.Serve(accepting) }

// endWatching stops ServeMetrics. A scrape that is under way may end; a connection that says nothing is not waited for.
func (s *Server) endWatching() {
	ctx, cancel := context.WithTimeout(context.Background(), watchersGrace)
	defer cancel()
	_ = s.watchers.ShutdownWithContext(ctx) // who is cut off has nothing to lose
}

func (s *Server) watchersHandler() fasthttp.RequestHandler {
	r := s.newRoutes()
	s.metricsRoutes(r)
	r.get("/healthz", s.healthz)
	return s.around(r.router.Handler)
}

package server

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/valyala/fasthttp"
)

const watchersGrace = time.Second / 2

// maxScrapes is how many scrapes may be under way at once: each costs some milliseconds. Prometheus sends one at a time.
const maxScrapes = 4

var errManyScrapes = errors.New("too many scrapes at once")

// scrapes bounds how many there are.
type scrapes struct{ underWay atomic.Int32 }

// metrics answers with all that is counted, in the text format of Prometheus.
func (s *Server) metrics(ctx *fasthttp.RequestCtx) error {
	defer s.scrapes.underWay.Add(-1)
	if s.scrapes.underWay.Add(1) > maxScrapes {
		return errManyScrapes
	}
	families, err := s.counts.registry.Gather()
	if err != nil {
		return err
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	header := &ctx.Response.Header
	header.SetContentType(string(format))
	keepFromCaches(ctx)
	header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if !ctx.Request.Header.HasAcceptEncoding("gzip") {
		return encodeMetrics(ctx.Response.BodyWriter(), format, families)
	}
	header.SetContentEncoding("gzip")
	packed := gzip.NewWriter(ctx.Response.BodyWriter())
	if err := encodeMetrics(packed, format, families); err != nil {
		return err
	}
	return packed.Close()
}

func encodeMetrics(to io.Writer, format expfmt.Format, families []*dto.MetricFamily) error {
	encoder := expfmt.NewEncoder(to, format)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return err
		}
	}
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
	r := s.newRouter()
	s.get(r, "/metrics", s.metrics)
	s.get(r, "/healthz", s.healthz)
	return s.around(r.Handler)
}

package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
	"remit/server"
)

const (
	maxHeaders  = 32 << 10
	headerTime  = 10 * time.Second
	idleTime    = 75 * time.Second
	connections = 4    // for each call that may be in progress: most clients keep some idle
	fewest      = 4096 // or as many as open files allow
)

// Serve answers on the listener until Stop. It takes the listener over, and follows the config until ctx ends.
func (g *Gateway) Serve(ctx context.Context, listener net.Listener) error {
	most := max(connections*g.source.current.Load().MaxStreams, fewest)
	if g.most > 0 {
		most = min(most, g.most)
	}
	g.waiting.setMost(most - most/16) // so that a new one can be accepted, and have one that waits closed
	listener = netutil.LimitListener(listener, most)
	if g.secure != nil {
		listener = tls.NewListener(listener, g.secure)
	}
	go g.source.follow(ctx)
	if err := g.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// newServer returns the HTTP side. What net/http logs quotes what clients send, so it goes nowhere.
func (g *Gateway) newServer() *http.Server {
	return &http.Server{
		Handler: g, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeaders, ErrorLog: log.New(io.Discard, "", 0),
		DisableGeneralOptionsHandler: true, ConnState: g.waiting.note,
	}
}

// tlsConfig returns nil for plain HTTP. The files are read again when they change.
func (g *Gateway) tlsConfig(files *tlsFiles) (*tls.Config, error) {
	if files == nil {
		return nil, nil
	}
	return server.TLSFiles{Certificate: files.Certificate, Key: files.Key, HTTP2: true}.Config(g.log)
}

const (
	// lingerTime is how long a gateway that stops goes on answering 503, at least: requests may be on their way, and who sends them has yet
	// to learn from /readyz.
	lingerTime = 500 * time.Millisecond
	// afterCut is how long the calls that a stop has cut may take to settle.
	afterCut = 5 * time.Second
)

// Stop takes no new calls and waits for those in progress, and their settlements, for stop_seconds; then it cuts them, and what was held for
// them is spent. While it waits it answers 503 to new calls and at /readyz, which is the first signal for those who send calls here.
func (g *Gateway) Stop() {
	g.stopping.Store(true)
	patience := g.source.current.Load().Stop
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	time.Sleep(min(g.linger, patience))
	g.busy.wait(ctx)
	g.http.SetKeepAlivesEnabled(false)
	err := g.http.Shutdown(ctx)
	cancel()
	if err != nil {
		if calls := g.places.len(); calls > 0 {
			g.log.Warn("the stop cuts calls: what was held for them is spent", "calls", calls)
		}
		g.cut(errCut)
		within(afterCut, func(ctx context.Context) { _ = g.http.Shutdown(ctx) })
		_ = g.http.Close()
	}
	within(afterCut, g.busy.wait)
	g.giveUp()
	within(renewTime+afterCut, g.busy.wait)
	g.cut(errCut)
	g.transport.CloseIdleConnections()
}

// within calls a function with a context that lasts so long.
func within(most time.Duration, f func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	f(ctx)
}

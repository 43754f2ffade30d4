package server

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

func TestAFailedPageHasTheHeadersOfPages(t *testing.T) {
	t.Parallel()
	s := New(Config{Log: slog.New(slog.DiscardHandler)})
	s.SetPages(Pages{
		Prefix: "/pages", Answer: func(*fasthttp.RequestCtx) { panic("for the test") },
		Headers: func(h *fasthttp.ResponseHeader) { h.Set("X-Frame-Options", "DENY") },
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	answered, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + listener.Addr().String() + "/pages")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answered.Body)
	_ = answered.Body.Close()
	if answered.StatusCode != http.StatusInternalServerError || answered.Header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("%d %v", answered.StatusCode, answered.Header)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	<-served
}

func TestACallForNobodyReservesMemoryWhileItLasts(t *testing.T) {
	t.Parallel()
	s := New(Config{Log: slog.New(slog.DiscardHandler)})
	held := 0
	answer := func(ctx *fasthttp.RequestCtx) {
		held = s.front.Unwritten.Reserved()
		if address := s.front.ClientAddress(ctx); address.IsValid() {
			t.Errorf("it counts for %s", address)
		}
		if id := string(ctx.Request.Header.Peek(web.HeaderRequestID)); id != "of-the-page" {
			t.Errorf("its request id is %q", id)
		}
	}
	if err := s.callInside(nil, Call{Method: "GET", Path: "/", RequestID: "of-the-page"}, answer, func(Reply) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if held < aloneBytes || s.front.Unwritten.Reserved() != 0 {
		t.Errorf("%d bytes while it lasted, %d after", held, s.front.Unwritten.Reserved())
	}
	s.SetPages(Pages{Prefix: "/pages"})
	s.identify = func(*fasthttp.RequestCtx) { held = s.front.Unwritten.Reserved() }
	if err := s.Identify(nil, "", func(Reply) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if held != identityBytes || s.front.Unwritten.Reserved() != 0 {
		t.Errorf("an Identify: %d bytes while it lasted, %d after", held, s.front.Unwritten.Reserved())
	}
}

// overTLS is the connection of a client, or a proxy, that speaks TLS to this server.
type overTLS struct{ net.Conn }

func (overTLS) Handshake() error                     { return nil }
func (overTLS) ConnectionState() tls.ConnectionState { return tls.ConnectionState{} }
func (overTLS) LocalAddr() net.Addr                  { return nil }
func (overTLS) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 1), Port: 1}
}

func TestAProxysOwnTLSDoesNotMakeItsClientsPrivate(t *testing.T) {
	t.Parallel()
	direct := New(Config{Log: slog.New(slog.DiscardHandler)})
	proxied := New(Config{Log: slog.New(slog.DiscardHandler), TrustedProxies: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
	for name, test := range map[string]struct {
		at   *Server
		told string
		want bool
	}{
		"a client":                       {direct, "", true},
		"a proxy that does not say":      {proxied, "", false},
		"a proxy, its client over HTTP":  {proxied, "http", false},
		"a proxy, its client over HTTPS": {proxied, "https", true},
	} {
		var ctx fasthttp.RequestCtx
		ctx.Init2(overTLS{}, web.Silent{}, false)
		if test.told != "" {
			ctx.Request.Header.Set(fasthttp.HeaderXForwardedProto, test.told)
		}
		if got := test.at.IsHTTPS(&ctx); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

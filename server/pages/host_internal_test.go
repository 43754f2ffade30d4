package pages

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"remit/server/conn"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// newHost returns a host in front of nothing, behind these proxies.
func newHost(proxies conn.Proxies) *Host {
	return New(nil, web.NewFront(web.Config{
		Log: slog.New(slog.DiscardHandler), Metrics: web.NewMetrics(prometheus.NewRegistry()), Proxies: proxies,
	}), &access.Guard{})
}

func TestACallWithoutAnOrganizationReservesMemoryWhileItLasts(t *testing.T) {
	t.Parallel()
	h := newHost(nil)
	held := 0
	answer := func(ctx *fasthttp.RequestCtx) {
		held = h.front.Unwritten.Reserved()
		if address := h.front.ClientAddress(ctx); address.IsValid() {
			t.Errorf("it counts for %s", address)
		}
		if id := string(ctx.Request.Header.Peek(web.HeaderRequestID)); id != "of-the-page" {
			t.Errorf("its request id is %q", id)
		}
	}
	if err := h.callInside(nil, Call{Method: "GET", Path: "/", RequestID: "of-the-page"}, answer, func(Reply) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if held < aloneBytes || h.front.Unwritten.Reserved() != 0 {
		t.Errorf("%d bytes while it lasted, %d after", held, h.front.Unwritten.Reserved())
	}
	h.Set(Site{Prefix: "/pages"})
	h.identify = func(*fasthttp.RequestCtx) { held = h.front.Unwritten.Reserved() }
	if err := h.Identify(nil, "", func(Reply) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if held != identityBytes || h.front.Unwritten.Reserved() != 0 {
		t.Errorf("an Identify: %d bytes while it lasted, %d after", held, h.front.Unwritten.Reserved())
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
	direct := newHost(nil)
	proxied := newHost(conn.Proxies{netip.MustParsePrefix("203.0.113.0/24")})
	for name, test := range map[string]struct {
		at   *Host
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

package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server"
	"remit/server/pages"
)

// pagesServer is a server with pages, which openapi.json does not describe.
type pagesServer struct {
	*server.Server

	t       *testing.T
	store   *redisstore.Store
	log     *syncBuffer
	own     string // address of ServePages
	address string
}

func servePages(t *testing.T, apart bool, answer func(*pagesServer, *fasthttp.RequestCtx)) *pagesServer {
	t.Helper()
	p := &pagesServer{t: t, log: &syncBuffer{}}
	p.store = must(redisstore.Open(redisstore.Config{URL: "redis://" + miniredis.RunT(t).Addr(), UsageEvery: time.Hour}))(t)
	p.Server = server.New(server.Config{Store: p.store, Log: newLog(p.log), AccessLog: server.AccessLog{Log: newLog(p.log), Every: 1}})
	p.Pages().Set(pages.Site{Prefix: "/pages", Apart: apart, Answer: func(ctx *fasthttp.RequestCtx) { answer(p, ctx) },
		Headers: func(h *fasthttp.ResponseHeader) { h.Set("X-Frame-Options", "DENY") }})
	served := make(chan error, 2)
	serve := func(on func(net.Listener) error) string {
		listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
		go func() { served <- on(listener) }()
		return listener.Addr().String()
	}
	p.address, p.own = serve(p.Serve), serve(p.ServePages)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		wantEqual(t, "shutdown", p.Shutdown(ctx), nil)
		for range 2 {
			wantEqual(t, "serve", <-served, nil)
		}
		_ = p.store.Close()
	})
	return p
}

var withoutKeepAlive = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func (p *pagesServer) get(address, path string, options ...option) (int, string) {
	p.t.Helper()
	request := must(http.NewRequest(http.MethodGet, "http://"+address+path, nil))(p.t)
	for _, set := range options {
		set(request.Header)
	}
	answered := must(withoutKeepAlive.Do(request))(p.t)
	defer answered.Body.Close()
	return answered.StatusCode, string(must(io.ReadAll(answered.Body))(p.t))
}

func echoPath(_ *pagesServer, ctx *fasthttp.RequestCtx) {
	ctx.SetBodyString("page " + string(ctx.Path()))
}

func TestPagesAnswerBelowTheirPrefixOnly(t *testing.T) {
	t.Parallel()
	p := servePages(t, false, echoPath)
	for path, want := range map[string]bool{"/pages": true, "/pages/a": true, "/pagesx": false, "/v1/pages": false} {
		if _, got := p.get(p.address, path); (got == "page "+path) != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestPagesApartAreOnTheirListenerOnlyAndNothingElseIs(t *testing.T) {
	t.Parallel()
	p := servePages(t, true, echoPath)
	for path, want := range map[string][2]int{"/pages/a": {404, 200}, "/healthz": {200, 404}, "/v1/agents": {401, 404}} {
		main, _ := p.get(p.address, path)
		own, _ := p.get(p.own, path)
		wantEqual(t, path, [2]int{main, own}, want)
	}
}

func TestAPageCallsTheAPIAsItsViewer(t *testing.T) {
	t.Parallel()
	p := servePages(t, false, func(p *pagesServer, ctx *fasthttp.RequestCtx) {
		c := pages.Call{APIKey: string(ctx.QueryArgs().Peek("key")), Method: "GET", Path: "/v1/api-keys"}
		_ = p.Pages().Call(ctx, c, func(r pages.Reply) error {
			ctx.SetStatusCode(r.Status)
			ctx.SetBody(r.Body)
			return nil
		})
	})
	answered := must(withoutKeepAlive.Post("http://"+p.address+"/v1/organizations", "application/json", strings.NewReader(`{"name":"acme"}`)))(t)
	text := string(must(io.ReadAll(answered.Body))(t))
	_ = answered.Body.Close()
	_, rest, _ := strings.Cut(text, `"api_key":"`)
	key, _, _ := strings.Cut(rest, `"`)
	if status, got := p.get(p.address, "/pages?key="+key, header("X-Request-Id", "of-the-page")); status != 200 || !strings.Contains(got, "first key") {
		t.Errorf("%d %s", status, got)
	}
	if status, _ := p.get(p.address, "/pages?key="+key[:20]); status != 401 {
		t.Errorf("with a wrong key: %d", status)
	}
	wantEqual(t, "lines of the log with the page's request id, its own and that of its call", strings.Count(p.log.String(), "request_id=of-the-page"), 2)
}

func TestAFailedPageHasTheHeadersOfPages(t *testing.T) {
	t.Parallel()
	p := servePages(t, false, func(*pagesServer, *fasthttp.RequestCtx) { panic("for the test") })
	answered := must(withoutKeepAlive.Get("http://" + p.address + "/pages"))(t)
	defer answered.Body.Close()
	if answered.StatusCode != http.StatusInternalServerError || answered.Header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("%d %v", answered.StatusCode, answered.Header)
	}
}

package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"remit/server/pages"
)

func TestAFailedPageHasTheHeadersOfPages(t *testing.T) {
	t.Parallel()
	s := New(Config{Log: slog.New(slog.DiscardHandler)})
	s.pages.Set(pages.Site{
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

// Command proxy is Go's own reverse proxy before one address: the floor of the gateway. It neither meters nor knows who calls.
//
//	proxy URL
//
// It listens on a free port of 127.0.0.1, and prints the address as the service does.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: proxy URL")
	}
	base, err := url.Parse(args[0])
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	slog.Info("listening", "url", "http://"+listener.Addr().String())
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(base) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}, // as the gateway's
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Otherwise the server closes the body of a request when its answer begins, also while the transport looks whether it has ended: that
		// then cuts the answer.
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1 can
		proxy.ServeHTTP(w, r)
	}))
}

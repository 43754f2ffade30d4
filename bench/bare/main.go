// Command bare answers every request with the same 200 response: the floor of the service's paths. It is the same HTTP server
// as the service's, without credentials, bodies, checks or Redis.
//
//	bare BYTES [ADDRESS]
//
// BYTES is the size of a response, with its head. Without an address, bare listens on a free port of 127.0.0.1. It prints the
// address as the service does.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"

	"github.com/valyala/fasthttp"
)

// head is what fasthttp writes before a body of 100 to 999 bytes.
const head = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return errors.New("usage: bare BYTES [ADDRESS]")
	}
	size, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	addr := "127.0.0.1:0"
	if len(args) == 2 {
		addr = args[1]
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	slog.Info("listening", "url", "http://"+listener.Addr().String())
	return answering(size).Serve(listener)
}

// answering returns a server whose responses have that many bytes in total.
func answering(size int) *fasthttp.Server {
	body := bytes.Repeat([]byte("x"), max(size-len(head), 1))
	return &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.Response.Header.SetContentType("application/json")
			ctx.SetBody(body)
		},
		NoDefaultServerHeader: true,
	}
}

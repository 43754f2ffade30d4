package bench

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"
)

// bareHead is what fasthttp writes before a body of three digits' length.
const bareHead = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"

// bare calls a server that does nothing but answer, with so many bytes in all, over as many connections as the path has.
func bare(tb testing.TB, size, connections int) contender {
	tb.Helper()
	return timed("bare", connect(tb, startBare(tb, size), connections, same(get("/", ""))).run)
}

// startBare runs a fasthttp server that does nothing but answer, with so many bytes in all.
func startBare(tb testing.TB, size int) (addr string) {
	tb.Helper()
	body := bytes.Repeat([]byte("x"), max(size-len(bareHead), 1))
	server := &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.Response.Header.SetContentType("application/json")
			ctx.SetBody(body)
		},
		NoDefaultServerHeader: true, CloseOnShutdown: true,
	}
	return serve(tb, server.Serve, server.ShutdownWithContext)
}

// plainRedis calls a script from so many goroutines with go-redis as it comes, but for a pool that is large enough.
func plainRedis(client *redis.Client, goroutines int, command []string) contender {
	words := make([]any, len(command))
	for i, word := range command {
		words[i] = word
	}
	floor := timed("redis", func(n int) ([]time.Duration, error) {
		return spread(goroutines, n, func(int) error {
			reply, err := client.Do(context.Background(), words...).Slice()
			if err == nil && reply[0] != "ok" {
				return fmt.Errorf("the script refuses: %q", reply)
			}
			return err
		})
	})
	floor.alone = goroutines == 1
	return floor
}

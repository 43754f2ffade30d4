package bench

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"
)

// bareHead is the head that fasthttp writes before a body of 100 to 999 bytes.
const bareHead = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"

// bare calls a server that only answers, with that many bytes in total, over as many connections as the path has.
func bare(tb testing.TB, size, connections int) contender {
	tb.Helper()
	return timed("bare", connect(tb, startBare(tb, size), connections, same(get("/", ""))).run)
}

// startBare runs a fasthttp server that only answers, with that many bytes in total.
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

// script returns the next command of one goroutine: EVALSHA and its arguments.
type script func() []any

// sameScript makes all goroutines repeat the same command.
func sameScript(command []string, goroutines int) []script {
	words := wordsOf(command)
	return slices.Repeat([]script{func() []any { return words }}, goroutines)
}

func wordsOf(command []string) []any {
	words := make([]any, len(command))
	for i, word := range command {
		words[i] = word
	}
	return words
}

// plainRedis sends scripts from several goroutines with the default go-redis client, except for a large enough pool.
func plainRedis(client *redis.Client, scripts []script) contender {
	floor := timed("redis", func(n int) ([]time.Duration, error) {
		return spread(len(scripts), n, func(goroutine int) error {
			reply, err := client.Do(context.Background(), scripts[goroutine]()...).Text()
			if code, _, _ := strings.Cut(reply, "\n"); err == nil && code != "ok" {
				return fmt.Errorf("the script refuses: %q", reply)
			}
			return err
		})
	})
	floor.alone = len(scripts) == 1
	return floor
}

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"
	"remit/redisproc"
	"remit/redisstore"
	"remit/server"
	"remit/token"
)

// service is the whole service in this process, on a real Redis, with one agent and a session that a benchmark does not
// use up.
type service struct {
	addr    string
	redis   string
	key     string // API key
	org     uuid.UUID
	agent   string
	secret  string
	access  string
	refresh string
	session string
}

func (s *service) asKey() string   { return "X-API-Key: " + s.key + "\r\n" }
func (s *service) asAgent() string { return "Authorization: Bearer " + s.access + "\r\n" }

func startService(tb testing.TB) *service {
	tb.Helper()
	process, err := redisproc.Start(context.Background(), redisproc.Config{Dir: tb.TempDir(), Fsync: "everysec"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = process.Stop() })
	store, err := redisstore.Open(redisstore.Config{URL: process.URL()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	srv := server.New(server.Config{
		Store: store, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Limits: server.Limits{Off: true},
	})
	srv.SetKeyring(newKeyring(tb))
	s := &service{redis: process.URL(), addr: serve(tb, srv.Serve, srv.Shutdown)}
	s.populate(tb)
	return s
}

func newKeyring(tb testing.TB) *token.Keyring {
	tb.Helper()
	material, err := token.GenerateSigningKey(token.Ed25519)
	if err != nil {
		tb.Fatal(err)
	}
	signing, err := token.ParseSigningKey(material)
	if err != nil {
		tb.Fatal(err)
	}
	refresh, err := token.ParseRefreshKey(token.GenerateRefreshKey())
	if err != nil {
		tb.Fatal(err)
	}
	keys, err := token.NewKeyring("http://bench", []*token.SigningKey{signing}, []*token.RefreshKey{refresh})
	if err != nil {
		tb.Fatal(err)
	}
	return keys
}

// serve runs a server on a loopback port until the benchmark ends.
func serve(tb testing.TB, serve func(net.Listener) error, shutdown func(context.Context) error) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() { _ = serve(l) })
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = shutdown(ctx)
		group.Wait()
	})
	return l.Addr().String()
}

func (s *service) populate(tb testing.TB) {
	tb.Helper()
	var made struct {
		ID, Secret   string
		Key          string `json:"api_key"`
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
	}
	ask := func(path, body string) {
		request, _ := http.NewRequest(http.MethodPost, "http://"+s.addr+path, bytes.NewReader([]byte(body)))
		request.Header.Set("Content-Type", "application/json")
		if s.key != "" {
			request.Header.Set("X-API-Key", s.key)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			tb.Fatal(err)
		}
		defer answer.Body.Close()
		if err := json.NewDecoder(answer.Body).Decode(&made); err != nil || answer.StatusCode/100 != 2 {
			tb.Fatalf("%s: %d, %v", path, answer.StatusCode, err)
		}
	}
	ask("/v1/organizations", `{"name":"bench"}`)
	s.key, s.org = made.Key, uuid.MustParse(made.ID)
	ask("/v1/agents", `{"name":"bench","scopes":["read","write"]}`)
	s.agent, s.secret = made.ID, made.Secret
	ask("/v1/auth/token", fmt.Sprintf(`{"agent_id":%q,"secret":%q}`, s.agent, s.secret))
	s.access, s.refresh = made.AccessToken, made.RefreshToken
	ask("/sessions", fmt.Sprintf(`{"agent_id":%q,"max_actions":1000000000,"max_value_usd":1000000000,"expires_in_seconds":86400}`, s.agent))
	s.session = made.ID
}

// startBare runs a fasthttp server that does nothing but answer with so many bytes.
func startBare(tb testing.TB, size int) string {
	tb.Helper()
	body := bytes.Repeat([]byte("x"), size)
	bare := &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.Response.Header.SetContentType("application/json")
			ctx.SetBody(body)
		},
		NoDefaultServerHeader: true, CloseOnShutdown: true,
	}
	return serve(tb, bare.Serve, bare.ShutdownWithContext)
}

// plainRedis calls a script from so many goroutines with go-redis as it comes, but for a pool that is large enough.
func plainRedis(tb testing.TB, url string, goroutines int, source string, keys []string, args ...any) contender {
	tb.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		tb.Fatal(err)
	}
	options.Protocol, options.PoolSize = 2, goroutines
	client := redis.NewClient(options)
	tb.Cleanup(func() { _ = client.Close() })
	script := redis.NewScript(source)
	if err := script.Load(context.Background(), client).Err(); err != nil {
		tb.Fatal(err)
	}
	return contender{"redis", func(n int) ([]time.Duration, error) {
		return spread(goroutines, n, func() error {
			return client.EvalSha(context.Background(), script.Hash(), keys, args...).Err()
		})
	}}
}

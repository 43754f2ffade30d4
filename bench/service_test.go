package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"
	"remit/internal/redisproc"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server"
)

// service is the complete service with a real Redis and one organization: the built program, or in this process.
type service struct {
	addr  string
	redis *redis.Client // to inspect what the service stores
	key   string        // API key
	org   uuid.UUID

	pid, redisPID int    // of the program and its Redis
	redisURL      string // of the program

	handler fasthttp.RequestHandler // in this process only
	store   *redisstore.Store       // in this process only
}

// agent is an agent of the service with a session whose limits no benchmark reaches.
type agent struct {
	id              uuid.UUID
	secret          string
	access, refresh string
	session         uuid.UUID
}

func (s *service) asKey() string { return "X-API-Key: " + s.key + "\r\n" }
func (a agent) bearer() string   { return "Authorization: Bearer " + a.access + "\r\n" }

// observers are the tracer and the access log of the service. The zero value has neither.
type observers struct {
	tracer trace.Tracer
	log    server.AccessLog
}

// startService runs the service in this process, on a Redis with an append-only file.
func startService(tb testing.TB) *service {
	tb.Helper()
	return startServiceOn(tb, redisproc.Config{Dir: tb.TempDir()}, observers{})
}

// startServiceOn serves on a loopback port until the test or benchmark ends.
func startServiceOn(tb testing.TB, config redisproc.Config, by observers) *service {
	tb.Helper()
	client, process := startRedis(tb, config)
	store := must(redisstore.Open(redisstore.Config{URL: process.URL(), Tracer: by.tracer}))(tb)
	tb.Cleanup(func() { _ = store.Close() })
	srv := server.New(server.Config{
		Store: store, Log: slog.New(slog.DiscardHandler), Limits: server.Limits{Off: true},
		Tracer: by.tracer, AccessLog: by.log,
	})
	srv.SetKeyring(newKeyring(tb))
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(tb)
	var group sync.WaitGroup
	group.Go(func() { _ = srv.Serve(listener) })
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = srv.Shutdown(ctx)
		group.Wait()
	})
	s := &service{store: store, redis: client, handler: srv.Handler(), addr: listener.Addr().String()}
	s.createOrganization(tb)
	return s
}

func (s *service) createOrganization(tb testing.TB) {
	tb.Helper()
	made := s.ask(tb, "/v1/organizations", `{"name":"bench"}`)
	s.key, s.org = made.Key, made.ID
}

// startRedis runs a Redis until the test or benchmark ends.
func startRedis(tb testing.TB, config redisproc.Config) (client *redis.Client, process *redisproc.Server) {
	tb.Helper()
	process = must(redisproc.Start(context.Background(), config))(tb)
	tb.Cleanup(func() { _ = process.Stop() })
	options := must(redis.ParseURL(process.URL()))(tb)
	options.Protocol, options.PoolSize = 2, connections
	client = redis.NewClient(options)
	tb.Cleanup(func() { _ = client.Close() })
	return client, process
}

func newKeyring(tb testing.TB) *token.Keyring {
	tb.Helper()
	material := must(token.GenerateSigningKey(token.Ed25519))(tb)
	signing := must(token.ParseSigningKey(material))(tb)
	refresh := must(token.ParseRefreshKey(token.GenerateRefreshKey()))(tb)
	return must(token.NewKeyring("http://bench", []*token.SigningKey{signing}, []*token.RefreshKey{refresh}))(tb)
}

// made is the answer to a creation.
type made struct {
	ID           uuid.UUID
	Secret       string
	Key          string `json:"api_key"`
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
}

func (s *service) ask(tb testing.TB, path, body string) (answer made) {
	tb.Helper()
	status, text := s.send(tb, http.MethodPost, path, body)
	if err := json.Unmarshal(text, &answer); err != nil || status/100 != 2 {
		tb.Fatalf("%s: %d, %v", path, status, err)
	}
	return answer
}

// send sends a request with the API key, once there is one.
func (s *service) send(tb testing.TB, method, path, body string) (status int, answer []byte) {
	tb.Helper()
	request := must(http.NewRequest(method, "http://"+s.addr+path, strings.NewReader(body)))(tb)
	request.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		request.Header.Set("X-API-Key", s.key)
	}
	response := must(http.DefaultClient.Do(request))(tb)
	defer response.Body.Close()
	return response.StatusCode, must(io.ReadAll(response.Body))(tb)
}

func (s *service) newAgent(tb testing.TB) agent {
	tb.Helper()
	created := s.ask(tb, "/v1/agents", `{"name":"bench","scopes":["read","write"]}`)
	a := agent{id: created.ID, secret: created.Secret}
	pair := s.ask(tb, "/v1/auth/token", a.exchangeBody())
	a.access, a.refresh = pair.AccessToken, pair.RefreshToken
	a.session = s.ask(tb, "/sessions", a.sessionBody()).ID
	return a
}

func (a agent) exchangeBody() string {
	return fmt.Sprintf(`{"agent_id":%q,"secret":%q}`, a.id, a.secret)
}

func (a agent) sessionBody() string {
	return fmt.Sprintf(`{"agent_id":%q,"max_actions":1000000000,"max_value_usd":1000000000,"expires_in_seconds":86400}`, a.id)
}

// charge is POST /sessions/{id}/actions with the access token.
func (a agent) charge(session uuid.UUID) call {
	return post("/sessions/"+session.String()+"/actions", a.bearer(), `{"action_type":"llm.call","value_usd":0.000001}`)
}

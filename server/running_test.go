package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"remit/internal/token"
	"remit/redisstore"
	"remit/test/suite"
)

// runningServer is a server on 127.0.0.1 that the test reaches into.
type runningServer struct {
	*Server
	address string
	redis   *miniredis.Miniredis // nil when the test brought a Redis of its own
	clock   *stoppedClock        // of the limits
}

// withoutStore is the URL of no Redis: each handler that needs one panics.
const withoutStore = "none"

// runServer serves until the test ends, on the Redis at the URL or, without one, on a miniredis.
func runServer(t *testing.T, redisURL string, config Config) runningServer {
	t.Helper()
	r := runningServer{clock: &stoppedClock{at: time.Unix(1_800_000_000, 0)}}
	if redisURL == "" {
		r.redis = miniredis.RunT(t)
		redisURL = "redis://" + r.redis.Addr()
	}
	if redisURL != withoutStore {
		config.Store = must(redisstore.Open(redisstore.Config{URL: redisURL, RefreshGrace: time.Minute, UsageEvery: time.Hour}))(t)
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	r.Server = New(config)
	limits := newLimits(config.Limits, r.clock.now)
	r.guard.FailedAuth, r.identity.Creations = limits.failedAuth, limits.organizations
	r.SetKeyring(someKeyring(t))
	HoldToDescription(t, r.Server)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	r.address = listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- r.Serve(listener) }()
	t.Cleanup(func() {
		bounded, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		wantEqual(t, "shutdown", errors.Join(r.Shutdown(bounded), <-served), nil)
		if config.Store != nil {
			_ = config.Store.Close()
		}
	})
	return r
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

// wantEqual fails the test unless the two are equal, and says what they are.
func wantEqual[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

var await = suite.Eventually

func someKeyring(t *testing.T) *token.Keyring { return KeyringOf(t, "remit-test") }

// KeyringOf returns new keys of an issuer.
func KeyringOf(t *testing.T, issuer string) *token.Keyring {
	t.Helper()
	signing := must(token.ParseSigningKey(must(token.GenerateSigningKey(token.Ed25519))(t)))(t)
	refresh := must(token.ParseRefreshKey(token.GenerateRefreshKey()))(t)
	return must(token.NewKeyring(issuer, []*token.SigningKey{signing}, []*token.RefreshKey{refresh}))(t)
}

// stoppedClock advances only on request.
type stoppedClock struct {
	lock sync.Mutex
	at   time.Time
}

func (c *stoppedClock) now() time.Time {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.at
}

func (c *stoppedClock) advance(by time.Duration) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.at = c.at.Add(by)
}

// from returns a client that connects from an address of this machine; "" leaves the choice to the system.
func from(t *testing.T, source string) *http.Client {
	t.Helper()
	dialer := &net.Dialer{}
	if source != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(source)}
	}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// reply is an answer, read whole.
type reply struct {
	status int
	header http.Header
	fields map[string]any
}

// post sends a JSON body; the extra headers alternate names and values, and may repeat a name.
func (r runningServer) post(t *testing.T, client *http.Client, path, body string, extra ...string) reply {
	t.Helper()
	request := must(http.NewRequest(http.MethodPost, "http://"+r.address+path, strings.NewReader(body)))(t)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(extra); i += 2 {
		request.Header.Add(extra[i], extra[i+1])
	}
	response := must(client.Do(request))(t)
	defer response.Body.Close()
	text := must(io.ReadAll(response.Body))(t)
	answered := reply{status: response.StatusCode, header: response.Header}
	if err := json.Unmarshal(text, &answered.fields); err != nil {
		t.Fatalf("%s: %d %q: %v", path, response.StatusCode, text, err)
	}
	return answered
}

// is fails the test unless the answer has this status and, if it is a problem, this code.
func (r reply) is(t *testing.T, status int, code string) reply {
	t.Helper()
	if given, _ := r.fields["code"].(string); r.status != status || given != code {
		t.Fatalf("answered %d %v, want %d %q", r.status, r.fields, status, code)
	}
	return r
}

func (r reply) text(t *testing.T, field string) string {
	t.Helper()
	text, ok := r.fields[field].(string)
	if !ok {
		t.Fatalf("no text %q in %v", field, r.fields)
	}
	return text
}

// newAgent returns the id and the secret of an agent of a fresh organization.
func (r runningServer) newAgent(t *testing.T, client *http.Client) (id, secret string) {
	t.Helper()
	key := r.post(t, client, "/v1/organizations", `{"name":"acme"}`).is(t, 201, "").text(t, "api_key")
	agent := r.post(t, client, "/v1/agents", `{"name":"scout","scopes":["read"]}`, "X-API-Key", key).is(t, 201, "")
	return agent.text(t, "id"), agent.text(t, "secret")
}

func (r runningServer) exchange(t *testing.T, client *http.Client, agent, secret string) reply {
	t.Helper()
	return r.post(t, client, "/v1/auth/token", `{"agent_id":"`+agent+`","secret":"`+secret+`"}`)
}

func (r runningServer) refresh(t *testing.T, client *http.Client, refreshToken string) reply {
	t.Helper()
	return r.post(t, client, "/v1/auth/refresh", `{"refresh_token":"`+refreshToken+`"}`)
}

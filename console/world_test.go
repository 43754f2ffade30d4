package console

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"remit/internal/token"
	"remit/money"
	"remit/redisstore"
	"remit/server"
	"remit/server/budgets"
	"remit/server/pages"
)

// patience is how long a test waits for what the console does by itself: much longer than that takes on a busy machine.
const patience = time.Minute

// world is a service with a console, and an organization with a key of each role.
type world struct {
	t       *testing.T
	server  *server.Server
	console *Console
	store   *redisstore.Store
	mini    *miniredis.Miniredis
	url     string
	org     string
	keys    map[redisstore.Role]string
}

type settings struct {
	proxies  []netip.Prefix
	limits   server.Limits
	log      io.Writer
	keyring  *token.Keyring
	redis    *miniredis.Miniredis
	apart    bool
	events   int // kept of an agent
	creation OrganizationCreation
	defaults budgets.SessionDefaults // of the service, and shown
}

func newWorld(t *testing.T, with settings) *world {
	t.Helper()
	if with.redis == nil {
		with.redis = miniredis.RunT(t)
	}
	if with.log == nil {
		with.log = io.Discard
	}
	if with.keyring == nil {
		with.keyring = newKeyring(t, newRefreshKey(t))
	}
	log := slog.New(slog.NewTextHandler(with.log, nil))
	if with.defaults == (budgets.SessionDefaults{}) {
		with.defaults = budgets.SessionDefaults{MaxActions: 1000, MaxValue: 100 * money.USD, Lifetime: time.Hour}
	}
	store := must(redisstore.Open(redisstore.Config{URL: "redis://" + with.redis.Addr(), EventsKept: with.events, KeepsFeeds: true, UsageEvery: time.Hour}))(t)
	s := server.New(server.Config{Store: store, Log: log, TrustedProxies: with.proxies, Limits: with.limits, Defaults: with.defaults, AccessLog: server.AccessLog{Log: log, Every: 1}})
	c := New(s.Pages(), log, Settings{with.creation, SessionDefaults(with.defaults)})
	s.Pages().Set(pages.Site{Prefix: Prefix, Answer: c.Answer, Headers: WriteHeaders, Apart: with.apart})
	s.SetKeyring(with.keyring)
	w := &world{t: t, server: s, console: c, store: store, mini: with.redis, url: "http://" + serve(t, s, store), keys: map[redisstore.Role]string{}}
	w.makeKeys()
	return w
}

// serve runs the server until the test ends, and returns its address.
func serve(t *testing.T, s *server.Server, store *redisstore.Store) string {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		<-served
		_ = store.Close()
	})
	return listener.Addr().String()
}

func newRefreshKey(t *testing.T) *token.RefreshKey {
	t.Helper()
	return must(token.ParseRefreshKey(token.GenerateRefreshKey()))(t)
}

func newKeyring(t *testing.T, refresh ...*token.RefreshKey) *token.Keyring {
	t.Helper()
	signing := must(token.ParseSigningKey(must(token.GenerateSigningKey(token.Ed25519))(t)))(t)
	return must(token.NewKeyring("remit-test", []*token.SigningKey{signing}, refresh))(t)
}

func (w *world) makeKeys() {
	var made struct {
		ID     string `json:"id"`
		APIKey string `json:"api_key"`
	}
	w.api("POST", "/v1/organizations", "", map[string]any{"name": "acme"}, &made)
	w.org, w.keys[admin] = made.ID, made.APIKey
	for _, role := range []redisstore.Role{viewer, operator} {
		w.api("POST", "/v1/api-keys", w.keys[admin], map[string]any{"name": string(role), "role": role}, &made)
		w.keys[role] = made.APIKey
	}
}

// api asks the API, as an admin's program would. The request must succeed.
func (w *world) api(method, path, key string, body, into any) {
	w.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	request := must(http.NewRequest(method, w.url+path, bytes.NewReader(text)))(w.t)
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("X-API-Key", key)
	}
	w.send(request, into)
}

func (w *world) send(request *http.Request, into any) {
	w.t.Helper()
	answered, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answered.Body.Close()
	text := must(io.ReadAll(answered.Body))(w.t)
	if answered.StatusCode >= 400 {
		w.t.Fatalf("%s %s: %d %s", request.Method, request.URL.Path, answered.StatusCode, text)
	}
	if into != nil && len(text) > 0 {
		if err := json.Unmarshal(text, into); err != nil {
			w.t.Fatal(err)
		}
	}
}

// try is api with the admin's key, for what may be refused. It returns the status.
func (w *world) try(method, path string, body any) (int, string) {
	w.t.Helper()
	text := must(json.Marshal(body))(w.t)
	request := must(http.NewRequest(method, w.url+path, bytes.NewReader(text)))(w.t)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-API-Key", w.keys[admin])
	answered := must(http.DefaultClient.Do(request))(w.t)
	defer answered.Body.Close()
	return answered.StatusCode, string(must(io.ReadAll(answered.Body))(w.t))
}

// asAdmin is api with the admin's key; it returns the object.
func (w *world) asAdmin(method, path string, body any) map[string]any {
	w.t.Helper()
	var made map[string]any
	w.api(method, path, w.keys[admin], body, &made)
	return made
}

// must is for calls that the test takes for granted: must(f())(t).
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// stored returns all that Redis holds, without what the feed of events keeps for itself: it works on after a change.
func (w *world) stored() string {
	var kept strings.Builder
	inFeed := false
	for line := range strings.Lines(w.mini.Dump()) {
		if key, isKey := strings.CutPrefix(line, "- "); isKey {
			inFeed = strings.HasPrefix(key, "remit:oe")
		}
		if !inFeed {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// settled returns what is stored once nothing in the background changes it any more.
func (w *world) settled() string {
	last, since := w.stored(), time.Now()
	for time.Since(since) < 1200*time.Millisecond {
		time.Sleep(50 * time.Millisecond)
		if now := w.stored(); now != last {
			last, since = now, time.Now()
		}
	}
	return last
}

package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"reflect"
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
	"remit/test/suite"
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
	server   string // the URL of a redis-server, in place of redis
	events   int    // kept of an agent
	creation OrganizationCreation
	defaults budgets.SessionDefaults // of the service, and shown
}

func newWorld(t *testing.T, with settings) *world {
	t.Helper()
	if with.redis == nil && with.server == "" {
		with.redis = miniredis.RunT(t)
	}
	if with.redis != nil {
		with.server = "redis://" + with.redis.Addr()
	}
	if with.log == nil {
		with.log = io.Discard
	}
	if with.keyring == nil {
		with.keyring = newKeyring(t)
	}
	log := slog.New(slog.NewTextHandler(with.log, nil))
	if with.defaults == (budgets.SessionDefaults{}) {
		with.defaults = budgets.SessionDefaults{MaxActions: 1000, MaxValue: 100 * money.USD, Lifetime: time.Hour}
	}
	store := must(redisstore.Open(redisstore.Config{URL: with.server, EventsKept: with.events, KeepsFeeds: true, UsageEvery: time.Hour}))(t)
	s := server.New(server.Config{Store: store, Log: log, TrustedProxies: with.proxies, Limits: with.limits, Defaults: with.defaults, AccessLog: server.AccessLog{Log: log, Every: 1}})
	c := New(s.Pages(), log, Settings{with.creation, SessionDefaults(with.defaults)})
	s.Pages().Set(pages.Site{Prefix: Prefix, Answer: c.Answer, Headers: WriteHeaders})
	s.SetKeyring(with.keyring)
	w := &world{t: t, server: s, console: c, store: store, mini: with.redis, url: "http://" + serve(t, s, store), keys: map[redisstore.Role]string{}}
	w.makeKeys()
	return w
}

func serve(t *testing.T, s *server.Server, store *redisstore.Store) string {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		wantEqual(t, "shutdown", s.Shutdown(ctx), nil)
		<-served
		_ = store.Close()
	})
	return listener.Addr().String()
}

func newKeyring(t *testing.T) *token.Keyring {
	t.Helper()
	signing := must(token.ParseSigningKey(must(token.GenerateSigningKey(token.Ed25519))(t)))(t)
	refresh := must(token.ParseRefreshKey(token.GenerateRefreshKey()))(t)
	return must(token.NewKeyring("remit-test", []*token.SigningKey{signing}, []*token.RefreshKey{refresh}))(t)
}

func (w *world) makeKeys() {
	var made struct {
		ID     string `json:"id"`
		APIKey string `json:"api_key"`
	}
	w.good("POST", "/v1/organizations", map[string]any{"name": "acme"}, &made)
	w.org, w.keys[admin] = made.ID, made.APIKey
	for _, role := range []redisstore.Role{viewer, operator} {
		w.good("POST", "/v1/api-keys", map[string]any{"name": string(role), "role": role}, &made, "X-API-Key", w.keys[admin])
		w.keys[role] = made.APIKey
	}
}

// askAPI sends a request to the API with these headers, and returns the answer's status and text.
func (w *world) askAPI(method, path string, body any, headers ...string) (status int, text string) {
	w.t.Helper()
	request := must(http.NewRequest(method, w.url+path, bytes.NewReader(must(json.Marshal(body))(w.t))))(w.t)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answered := must(http.DefaultClient.Do(request))(w.t)
	defer answered.Body.Close()
	return answered.StatusCode, string(must(io.ReadAll(answered.Body))(w.t))
}

// good is askAPI for a request that must succeed.
func (w *world) good(method, path string, body, into any, headers ...string) {
	w.t.Helper()
	status, text := w.askAPI(method, path, body, headers...)
	if status >= 400 {
		w.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if into != nil && text != "" {
		must(0, json.Unmarshal([]byte(text), into))(w.t)
	}
}

// asAdmin is good with the admin's key; it returns the object.
func (w *world) asAdmin(method, path string, body any) map[string]any {
	w.t.Helper()
	var made map[string]any
	w.good(method, path, body, &made, "X-API-Key", w.keys[admin])
	return made
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

func wantEqual[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

func wantAtMost[T cmp.Ordered](t *testing.T, what string, got, most T) {
	t.Helper()
	if got > most {
		t.Errorf("%s: %v, want at most %v", what, got, most)
	}
}

func wantContains(t *testing.T, what, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s does not say %q: %s", what, part, text)
	}
}

var await = suite.Eventually

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

package console

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server"
)

func TestAKeyOfAnyRoleSignsIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	for _, role := range []redisstore.Role{viewer, operator, admin} {
		b := w.as(t, role)
		cookie := b.cookies[signInCookie]
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != Prefix || cookie.MaxAge != 8*60*60 || cookie.Secure {
			t.Errorf("the cookie is %v", cookie)
		}
		if strings.Contains(cookie.Value, w.keys[role][10:20]) {
			t.Error("the cookie holds the key in clear text")
		}
		b.get(Prefix).want(200).says("acme", string(role), "Sign out")
	}
}

func TestTheSignInSaysHowToGetAKeyHere(t *testing.T) {
	t.Parallel()
	for creation, says := range map[OrganizationCreation]struct{ yes, no string }{
		"open":   {"/v1/organizations -H 'Content-Type: application/json' -d", "BOOTSTRAP_TOKEN"},
		"token":  {`-H "Authorization: Bearer $BOOTSTRAP_TOKEN" -d`, "Only the operator"},
		"closed": {"Only the operator of this service creates organizations", "curl"},
	} {
		w := newWorld(t, settings{creation: creation})
		got := w.browser(t).get(Prefix).want(200).says(says.yes, "REMIT_ADDR="+w.url+" remit key create")
		for host, plain := range map[string]bool{"remit.example:8443": true, "[::1]:80": true, "$(id).example": false, "a;b": false, "": false} {
			if isPlainHost([]byte(host)) != plain {
				t.Errorf("the host %q: want plain %t", host, plain)
			}
		}
		if strings.Contains(got.words(), says.no) {
			t.Errorf("%s: the page says %q:\n%s", creation, says.no, got.words())
		}
	}
}

func TestWhatIsNoLiveKeyDoesNotSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	foreign := token.NewAPIKey(redisstore.NewRootID())
	for _, given := range []string{"", "rmk_x", foreign, w.keys[admin] + "x", strings.Repeat("x", 10_000)} {
		b := w.browser(t)
		got := b.post(Prefix, "api_key", given).want(401).says("You are not signed in")
		if len(b.cookies) > 0 || given != "" && strings.Contains(got.text, given) {
			t.Errorf("%.20q: cookies %v, page %s", given, b.cookies, got.words())
		}
	}
}

func TestWithoutASignInAPageLeadsToIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.browser(t).get(Prefix).want(200).says("API key")
	for _, p := range w.console.pages() {
		if p.path == Prefix || p.stream { // a stream tells its page to lead to it
			continue
		}
		path := strings.NewReplacer("{", "", "}", "").Replace(p.path)
		got := w.browser(t).ask(p.method, path, map[string][]string{})
		if p.undone != "" {
			got.want(http.StatusUnauthorized).says(strings.TrimSuffix(p.undone, ".")+" by this", "If you sent the form before, it may have been done", "API key")
			continue
		}
		got.want(http.StatusSeeOther)
		if to := got.header.Get("Location"); !strings.HasPrefix(to, Prefix) {
			t.Errorf("%s leads to %q", got.what, to)
		}
	}
}

func TestASignInLeadsToThePageAskedForButNowhereElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	for given, want := range map[string]string{
		"/console/agents?q=a%20b": "/console/agents?q=a%20b", "/console": "/console", "": "/console",
		"//evil.example/console": "/console", "https://evil.example/console": "/console", "/consoles": "/console", "/console/../v1": "/console",
		"/\\evil.example": "/console", "/console\r\nX: y": "/console", "javascript:alert(1)": "/console",
	} {
		if got := w.browser(t).post(Prefix, "api_key", w.keys[viewer], "to", given).header.Get("Location"); got != want {
			t.Errorf("%q leads to %q, want %q", given, got, want)
		}
	}
}

func TestASignInEndsWithItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := map[string]string{}
	var listed []map[string]any
	w.api("GET", "/v1/api-keys", w.keys[admin], nil, &listed)
	for _, key := range listed {
		ids[key["name"].(string)] = key["id"].(string)
	}
	for name, end := range map[string]func(*testing.T, *world) *browser{
		"deleted": func(t *testing.T, w *world) *browser {
			b := w.as(t, operator)
			w.api("DELETE", "/v1/api-keys/"+ids["operator"], w.keys[admin], map[string]any{}, nil)
			return b
		},
		"rotated, though the key is in its grace time": func(t *testing.T, w *world) *browser {
			b := w.as(t, viewer)
			w.asAdmin("POST", "/v1/api-keys/"+ids["viewer"]+"/rotate", map[string]any{"grace_seconds": 300})
			return b
		},
		"rotated, the first key": func(t *testing.T, w *world) *browser {
			other := newWorld(t, settings{redis: w.mini, keyring: nil})
			b := other.as(t, admin)
			other.asAdmin("POST", "/v1/organizations/"+other.org+"/api-key/rotate", map[string]any{"grace_seconds": 300})
			return b
		},
	} {
		b := end(t, w)
		if got := b.get(Prefix); got.status != 200 || !strings.Contains(got.words(), "API key") || strings.Contains(got.words(), "Sign out") {
			t.Errorf("%s: %d %s", name, got.status, got.words())
		}
		if len(b.cookies) > 0 {
			t.Errorf("%s: the browser keeps %v", name, b.cookies)
		}
	}
}

func TestAnExpiredKeyEndsItsSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	start := time.Now()
	w.mini.SetTime(start)
	made := w.asAdmin("POST", "/v1/api-keys", map[string]any{"name": "brief", "role": "viewer", "expires_in_seconds": 60})
	w.keys[viewer] = made["api_key"].(string)
	b := w.as(t, viewer)
	b.get(Prefix).says("Sign out")
	w.mini.SetTime(start.Add(61 * time.Second))
	b.get(Prefix).saysNot("Sign out")
}

func TestASignInEndsAfterEightHours(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for age, over := range map[time.Duration]bool{
		0: false, 8*time.Hour - time.Second: false, 8 * time.Hour: true, -time.Hour: true,
	} {
		if s := newSignIn("key", now.Add(-age)); s.isOver(now) != over {
			t.Errorf("after %s: over %t", age, !over)
		}
	}
}

func TestSigningOutForgetsTheSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	b := w.as(t, viewer)
	b.send(b.get(Prefix), Prefix+"/sign-out").want(200).saysNot("Sign out")
	if len(b.cookies) > 0 {
		t.Errorf("the browser keeps %v", b.cookies)
	}
}

func TestEveryInstanceOpensACookieAlsoAfterARotationOfItsKey(t *testing.T) {
	t.Parallel()
	old, fresh := newRefreshKey(t), newRefreshKey(t)
	w := newWorld(t, settings{keyring: newKeyring(t, old)})
	b := w.as(t, viewer)
	for name, test := range map[string]struct {
		keyring *token.Keyring
		opens   bool
	}{
		"the same key": {newKeyring(t, old), true}, "a rotated key": {newKeyring(t, fresh, old), true}, "a retired key": {newKeyring(t, fresh), false},
	} {
		another := newWorld(t, settings{redis: w.mini, keyring: test.keyring})
		there := another.browser(t)
		there.cookies[signInCookie] = b.cookies[signInCookie]
		if got := strings.Contains(there.get(Prefix).words(), "Sign out"); got != test.opens {
			t.Errorf("%s: signed in %t", name, got)
		}
	}
}

func TestAChangedCookieIsNoSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	b := w.as(t, viewer)
	genuine := b.cookies[signInCookie].Value
	for i := range genuine {
		changed := []byte(genuine)
		if changed[i] ^= 1; string(changed) == genuine {
			continue
		}
		if _, err := w.console.host.OpenCookie(signInCookie, string(changed)); err == nil {
			t.Fatalf("byte %d may be changed", i)
		}
	}
	if _, err := w.console.host.OpenCookie(flashCookie, genuine); err == nil {
		t.Error("one cookie opens as another")
	}
}

func TestSignInAttemptsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{limits: server.Limits{FailedAuthPerMinute: 3}})
	wrong := token.NewAPIKey(uuid.MustParse(w.org))
	for range 3 {
		w.browser(t).post(Prefix, "api_key", wrong).want(401)
	}
	got := w.browser(t).post(Prefix, "api_key", wrong).want(429).says("Too many attempts", "You are not signed in")
	if got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestNoLogHoldsAKeyOrACookie(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	w := newWorld(t, settings{log: &log})
	b := w.as(t, admin)
	b.get(Prefix).want(200)
	w.browser(t).post(Prefix, "api_key", w.keys[admin][:40]+"x").want(401)
	for _, secret := range []string{w.keys[admin], w.keys[admin][:40], b.cookies[signInCookie].Value} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log holds %.10s…", secret)
		}
	}
	if !strings.Contains(log.String(), "route=/console") {
		t.Errorf("the access log does not tell of pages: %s", log.String())
	}
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

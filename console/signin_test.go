package console

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server"
	"remit/test/serviceproc"
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
		wantEqual(t, "the cookie holds the key in clear text", strings.Contains(cookie.Value, w.keys[role][10:20]), false)
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
		w.browser(t).get(Prefix).want(200).says(says.yes, "REMIT_ADDR="+w.url+" remit key create").saysNot(says.no)
	}
	for host, plain := range map[string]bool{"remit.example:8443": true, "[::1]:80": true, "$(id).example": false, "a;b": false, "": false} {
		wantEqual(t, "plain is "+host, isPlainHost([]byte(host)), plain)
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
		field := controlsOf(got.formNode(Prefix, "post"))["api_key"]
		says := got.textOfID(attribute(field, "aria-describedby"))
		if attribute(field, "aria-invalid") != "true" || !has(field, "autofocus") || says == "" {
			t.Errorf("%.20q: the field has %v and says %q", given, field.Attr, says)
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
		wantEqual(t, got.what+" leads to a page", strings.HasPrefix(got.want(http.StatusSeeOther).header.Get("Location"), Prefix), true)
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
		got := w.browser(t).post(Prefix, "api_key", w.keys[viewer], "to", given)
		wantEqual(t, fmt.Sprintf("%q leads to", given), got.header.Get("Location"), want)
	}
}

func TestASignInEndsAfterEightHours(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for age, over := range map[time.Duration]bool{0: false, 8*time.Hour - time.Second: false, 8 * time.Hour: true, -time.Hour: true} {
		wantEqual(t, fmt.Sprint("over after ", age), newSignIn("key", now.Add(-age)).isOver(now), over)
	}
}

func TestAChangedCookieIsNoSignIn(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	genuine := b.cookies[signInCookie].Value
	for i := range genuine {
		changed := []byte(genuine)
		changed[i] ^= 1
		if _, err := w.console.host.OpenCookie(signInCookie, string(changed)); err == nil {
			t.Fatalf("byte %d may be changed", i)
		}
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
	wantEqual(t, "it has Retry-After", got.header.Get("Retry-After") != "", true)
}

func TestNoLogHoldsAKeyOrACookie(t *testing.T) {
	t.Parallel()
	var log serviceproc.Output
	w := newWorld(t, settings{log: &log})
	b := w.as(t, admin)
	b.get(Prefix).want(200)
	w.browser(t).post(Prefix, "api_key", w.keys[admin][:40]+"x").want(401)
	for _, secret := range []string{w.keys[admin], w.keys[admin][:40], b.cookies[signInCookie].Value} {
		wantEqual(t, "the log holds "+secret[:10], strings.Contains(log.String(), secret), false)
	}
	wantContains(t, "the access log", log.String(), "route=/console")
}

func TestTheConsoleWorksOnlyOverHTTPSOrOnThisMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	proxied := newWorld(t, settings{proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for name, test := range map[string]struct {
		at      *world
		headers map[string]string
		status  int
	}{
		"from this machine":                      {w, nil, 200},
		"to localhost":                           {w, map[string]string{"Host": "localhost:8080"}, 200},
		"by a name that leads here":              {w, map[string]string{"Host": "rebound.example"}, 403},
		"by a proxy that is not trusted":         {w, map[string]string{"X-Forwarded-Proto": "https"}, 403},
		"by a proxy that names its client":       {w, map[string]string{"X-Forwarded-For": "203.0.113.9"}, 403},
		"by a trusted proxy, HTTPS":              {proxied, map[string]string{"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9", "Host": "remit.example"}, 200},
		"by a trusted proxy, HTTP":               {proxied, map[string]string{"X-Forwarded-Proto": "http", "X-Forwarded-For": "203.0.113.9"}, 403},
		"by two proxies, one of them over HTTP":  {proxied, map[string]string{"X-Forwarded-Proto": "http, https"}, 403},
		"by a trusted proxy that does not say":   {proxied, map[string]string{"X-Forwarded-For": "203.0.113.9"}, 403},
		"from this machine, which is also proxy": {proxied, nil, 200},
	} {
		b := test.at.browser(t)
		b.headers = test.headers
		wantEqual(t, name, b.get(Prefix).status, test.status)
		if test.status == 403 {
			b.post(Prefix, "api_key", test.at.keys[admin]).want(403)
		}
	}
	b := proxied.browser(t)
	b.headers = map[string]string{"X-Forwarded-Proto": "https", "Host": "remit.example"}
	b.post(Prefix, "api_key", proxied.keys[admin]).want(303)
	if cookie := b.cookies[hostPrefix+signInCookie]; cookie == nil || !cookie.Secure || cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("over HTTPS the cookie is %v", cookie)
	}
	b.get(agents).want(200)
}

func TestSigningOutNeedsNoStore(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	csrf := b.csrf()
	w.mini.SetError(loading)
	b.post(signOutPath, "csrf", "wrong").want(http.StatusForbidden)
	b.post(signOutPath, "csrf", csrf).want(http.StatusSeeOther)
	w.mini.SetError("")
	wantEqual(t, "how many cookies the browser keeps", len(b.cookies), 0)
	wantEqual(t, "Clear-Site-Data", w.browser(t).post(signOutPath).want(http.StatusSeeOther).header.Get("Clear-Site-Data"), `"cache"`)
}

func TestARequestOfHTTP10IsNotFromThisMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	host := strings.TrimPrefix(w.url, "http://")
	for version, want := range map[string]string{"1.1": "200", "1.0": "403"} {
		conn := must(net.Dial("tcp", host))(t)
		fmt.Fprintf(conn, "GET /console HTTP/%s\r\nHost: %s\r\nConnection: close\r\n\r\n", version, host)
		line, err := bufio.NewReader(conn).ReadString('\n')
		if conn.Close(); err != nil || !strings.Contains(line, " "+want+" ") {
			t.Errorf("HTTP/%s: %q %v, want %s", version, line, err, want)
		}
	}
}

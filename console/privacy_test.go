package console

import (
	"net/netip"
	"testing"
)

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

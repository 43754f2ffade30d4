package interop

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// The tests of this file compare the requests that pass nginx with the charges of the session.

func TestNginxRefusesARequestBeyondTheBudgetAndChargesNothing(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	g := startNginx(t, v.service.URL)
	for _, tc := range []struct {
		session session
		charged string
	}{
		{v.newSession(t, v.agent, 2, 1), "0.1"},    // out of actions
		{v.newSession(t, v.agent, 9, 0.12), "0.1"}, // 0.02 USD left
	} {
		for range 2 {
			g.wantStatus(t, 200, http.MethodGet, "/search/", bearing(v.token, tc.session.ID))
		}
		for range 3 {
			g.wantStatus(t, 403, http.MethodGet, "/search/", bearing(v.token, tc.session.ID))
		}
		v.wantCharged(t, tc.session, 2, tc.charged)
	}
	g.backend.wantRequests(t, 4)
}

// nginx selects the location, and with it the price, by the resolved path, but forwards the raw path.
func TestNginxRefusesAmbiguousPathsAndHidesItsInternalLocations(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	g := startNginx(t, v.service.URL)
	for _, path := range []string{
		"/search/x/../../reports/", "/search/..%2freports/x", "/search/%2e%2e/reports/x", "/search//x", "/search/./x",
		"/reports/..;/search/q", "/reports/..%5csearch/q", "/search/a%2Fb", "/search/x/..", "/search/%3bx", "/search/../_remit/search",
	} {
		g.wantStatus(t, 400, http.MethodGet, path, bearing(v.token, v.session.ID))
	}
	for _, path := range []string{"/_remit/reports", "/_remit/search"} {
		g.wantStatus(t, 404, http.MethodGet, path, bearing(v.token, v.session.ID))
	}
	g.wantStatus(t, 200, http.MethodGet, "/search/a..b/c.?q=../x//y%2e%2e", bearing(v.token, v.session.ID))
	v.wantCharged(t, v.session, 1, "0.05")
	g.backend.wantRequests(t, 1)
}

func TestNginxChargesEachRequestOnce(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	remit := recordingProxy(t, v.service)
	g := startNginx(t, remit.server.URL)
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	for i, method := range methods {
		g.wantStatus(t, 200, method, "/search/", bearing(v.token, v.session.ID))
		remit.wantRequests(t, i+1)
	}
	v.wantCharged(t, v.session, len(methods), "0.35")
	g.backend.wantRequests(t, len(methods))
}

func TestAClientCannotSetThePriceOfItsRequest(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	g := startNginx(t, v.service.URL)
	header := bearing(v.token, v.session.ID)
	for name, value := range map[string]string{
		"X-Value-Usd": "0", "X-Count": "3", "X-Scope": "reports:read", "X-Action-Type": "free",
	} {
		header.Set(name, value)
	}
	g.wantStatus(t, 200, http.MethodGet, "/search/?value_usd=0&count=3&scope=none&session_id=none", header)
	v.wantCharged(t, v.session, 1, "0.05")
	narrow := v.newAgent(t, "reports:read")
	header = bearing(v.accessToken(t, narrow), v.newSession(t, narrow, 10, 1).ID)
	header.Set("X-Scope", "reports:read")
	g.wantStatus(t, 403, http.MethodGet, "/search/?scope=reports:read", header)
	g.backend.wantRequests(t, 1)
}

func TestNginxDoesNotRetryWhenTheResponseIsLost(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	proxy := proxyTo(t, v.service)
	remit := startRecorder(t, func(_ http.ResponseWriter, r *http.Request, _ seenRequest) {
		proxy.ServeHTTP(httptest.NewRecorder(), r) // the service charges
		panic(http.ErrAbortHandler)                // close the connection without a response
	})
	g := startNginx(t, remit.server.URL)
	g.wantStatus(t, 500, http.MethodGet, "/search/", bearing(v.token, v.session.ID))
	remit.wantRequests(t, 1)
	v.wantCharged(t, v.session, 1, "0.05")
	g.backend.wantRequests(t, 0)
}

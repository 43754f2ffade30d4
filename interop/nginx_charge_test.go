package interop

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// The tests of this file count what passes nginx against what the session was charged.

func TestNginxStopsARequestThatDoesNotFitAndChargesNothing(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	g := startNginx(t, v.service.URL)
	for _, tc := range []struct {
		session session
		charged string
	}{
		{v.newSession(t, v.agent, 2, 1), "0.1"},    // out of actions
		{v.newSession(t, v.agent, 9, 0.12), "0.1"}, // 0.02 USD are left
	} {
		for range 2 {
			g.wantStatus(t, 200, http.MethodGet, "/search/", bearing(v.token, tc.session.ID))
		}
		for range 3 {
			g.wantStatus(t, 403, http.MethodGet, "/search/", bearing(v.token, tc.session.ID))
		}
		v.wantCharged(t, tc.session, 2, tc.charged)
	}
	g.backend.wantAsked(t, 4)
}

// nginx chooses the location, and the price, by the resolved path, and passes on the raw one.
func TestNginxRefusesPathsThatABackendCouldReadInAnotherWay(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	g := startNginx(t, v.service.URL)
	for _, path := range []string{
		"/search/x/../../reports/", "/search/..%2freports/x", "/search/%2e%2e/reports/x", "/search//x", "/search/./x",
		"/reports/..;/search/q", "/reports/..%5csearch/q", "/search/a%2Fb", "/search/x/..", "/search/%3bx",
	} {
		g.wantStatus(t, 400, http.MethodGet, path, bearing(v.token, v.session.ID))
	}
	g.wantStatus(t, 200, http.MethodGet, "/search/a..b/c.?q=../x//y%2e%2e", bearing(v.token, v.session.ID))
	v.wantCharged(t, v.session, 1, "0.05")
	g.backend.wantAsked(t, 1)
}

func TestNginxChargesEachRequestOnce(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	remit := watch(t, v.service)
	g := startNginx(t, remit.server.URL)
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	for i, method := range methods {
		g.wantStatus(t, 200, method, "/search/", bearing(v.token, v.session.ID))
		remit.wantAsked(t, i+1)
	}
	v.wantCharged(t, v.session, len(methods), "0.35")
	g.backend.wantAsked(t, len(methods))
}

func TestAClientCannotPriceItsOwnRequest(t *testing.T) {
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
	g.backend.wantAsked(t, 1)
}

func TestNginxLetsThroughExactlyWhatTheSessionHas(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	g := startNginx(t, v.service.URL)
	budget := v.newSession(t, v.agent, 50, 100)
	var passed, refused atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			response, body, err := g.ask(t.Context(), http.MethodPost, "/search/", bearing(v.token, budget.ID), nil)
			switch {
			case err != nil:
				t.Error(err)
			case response.StatusCode == 200:
				passed.Add(1)
			case response.StatusCode == 403:
				refused.Add(1)
			default:
				t.Errorf("%s: %s", response.Status, body)
			}
		})
	}
	wg.Wait()
	if passed.Load() != 50 || refused.Load() != 150 {
		t.Errorf("%d passed and %d were refused, not 50 and 150", passed.Load(), refused.Load())
	}
	g.backend.wantAsked(t, 50)
	v.wantCharged(t, budget, 50, "2.5")
}

func TestNginxDoesNotAskAgainWhenTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	proxy := proxyTo(t, v.service)
	remit := startRecorder(t, func(_ http.ResponseWriter, r *http.Request, _ seenRequest) {
		proxy.ServeHTTP(httptest.NewRecorder(), r) // it is charged
		panic(http.ErrAbortHandler)                // and the connection ends
	})
	g := startNginx(t, remit.server.URL)
	g.wantStatus(t, 500, http.MethodGet, "/search/", bearing(v.token, v.session.ID))
	remit.wantAsked(t, 1)
	v.wantCharged(t, v.session, 1, "0.05")
	g.backend.wantAsked(t, 0)
}

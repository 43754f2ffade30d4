package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// asking is an agent that asks for more in a session.
type asking struct{ id, session, access string }

func (w *world) asking(name string) asking {
	id, secret := w.newSecretAgent(name)
	return asking{id, w.newSession(id, nil), w.exchange(id, secret)}
}

// ask asks for more, and returns the path of the request in the console.
func (w *world) ask(a asking, reason string) string {
	path := "/sessions/" + a.session + "/requests"
	return Prefix + path + "/" + w.asAgent(a.access, "/v1"+path, map[string]any{"add_value_usd": 5, "reason": reason})["id"].(string)
}

func (a *answer) reasons() string {
	var found []string
	for node := range a.elements("bdi") {
		if text := textOf(node); strings.HasPrefix(text, "reason ") {
			found = append(found, strings.TrimPrefix(text, "reason "))
		}
	}
	return strings.Join(found, " ")
}

// lists waits until the page has these reasons: the events come a moment after what they tell.
func (b *browser) lists(path, reasons string) *answer {
	b.t.Helper()
	return b.once(path, func(a *answer) bool { return a.want(http.StatusOK).reasons() == reasons })
}

func TestRequestsAreListedPendingFirstAndByStatusAndAgent(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	one, other, gone := w.asking("one"), w.asking("other"), w.asking("gone")
	first, second := w.ask(one, "reason a"), w.ask(one, "reason b")
	w.ask(one, "reason c")
	w.ask(other, "reason d")
	w.ask(gone, "reason e")
	w.asAdmin("POST", "/v1"+strings.TrimPrefix(first, Prefix)+"/approve", map[string]any{})
	w.asAdmin("POST", "/v1"+strings.TrimPrefix(second, Prefix)+"/deny", map[string]any{})
	w.asAdmin("POST", "/v1/sessions/"+other.session+"/end", map[string]any{})
	for path, want := range map[string]string{
		requestsPath:                                     "c e d b a",
		requestsPath + "?status=pending":                 "c e",
		requestsPath + "?status=approved":                "a",
		requestsPath + "?status=denied":                  "b",
		requestsPath + "?status=unknown":                 "c e d b a",
		requestsPath + "?agent=" + other.id:              "d",
		requestsPath + "?status=denied&agent=" + gone.id: "",
	} {
		wantEqual(t, "a viewer may decide at "+path, b.lists(path, want).hasForm(first+"/approve"), false)
	}
	b.lists(requestsPath, "c e d b a").says("5.00 more for session", "of one", "Granted: 0 actions, $5.00", "An API key decided it", "Its session ended")
	w.asAdmin("POST", "/v1/agents/"+gone.id+"/revoke", map[string]any{})
	b.lists(requestsPath+"?status=ended&agent="+gone.id, "e")
	b.lists(requestsPath+"?status=pending", "c")
}

func TestAnOperatorDecidesRequestsWhereAllAreListed(t *testing.T) {
	t.Parallel()
	w, b := visited(t, operator)
	one := w.asking("one")
	approved, denied := w.ask(one, "reason a"), w.ask(one, "reason b")
	page := b.lists(requestsPath, "a b")
	b.send(page, approved+"/approve", "add_value_usd", "2.50", "comment", "half").says("The request is approved", "Granted: 0 actions, $2.50", "half")
	b.send(b.get(requestsPath), denied+"/deny").says("The request is denied")
	b.lists(requestsPath+"?status=pending", "").says("No request matches")
	page = b.lists(requestsPath, "b a")
	wantEqual(t, "what is decided has a form", page.hasForm(approved+"/approve") || page.hasForm(denied+"/deny"), false)
}

func TestAllRequestsArePagedAndTheirNumberIsInTheHead(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	var all []string
	for n := range requestsPerPage + 1 {
		w.ask(w.asking(fmt.Sprint("agent ", n)), fmt.Sprintf("reason %02d", n))
		all = append(all, fmt.Sprintf("%02d", n))
	}
	b.once(requestsPath, func(a *answer) bool { return a.way("Next page") != "" }) // when the last event has come
	first := b.lists(requestsPath, strings.Join(all[:requestsPerPage], " "))
	second := b.get(first.way("Next page")).want(http.StatusOK)
	if got := second.reasons(); got != all[requestsPerPage] || second.way("Next page") != "" || second.way("Previous page") == "" {
		t.Errorf("the second page has %q", got)
	}
	b.once(agents, func(a *answer) bool { return a.way("Requests 26") != "" })
}

func TestARequestThatItsSessionNoLongerKeepsIsListed(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	one := w.asking("one")
	var want []string
	for n := range 33 { // a session keeps 32
		asked := w.ask(one, fmt.Sprintf("reason %02d", n))
		w.asAdmin("POST", "/v1"+strings.TrimPrefix(asked, Prefix)+"/deny", map[string]any{})
		want = append([]string{fmt.Sprintf("%02d", n)}, want...)
	}
	b.lists(requestsPath, strings.Join(want[:requestsPerPage], " "))
	b.lists(requestsPath+"?page=1", strings.Join(want[requestsPerPage:32], " ")).says("The session no longer keeps what was asked for")
}

func TestStatsAreBounded(t *testing.T) {
	t.Parallel()
	s := newStats()
	event := func(kind string, n int) eventRow {
		return eventRow{Type: kind, AgentID: uuid.NewString(), SessionID: uuid.NewString(), AskedID: uuid.NewString(), OccurredAt: time.Unix(int64(n), 0)}
	}
	for n := range 3 * mostDecided {
		e := event("", n)
		for _, e.Type = range []string{"session.more_requested", "session.request_denied", "session.request_denied"} {
			s.count(e)
		}
	}
	if n := len(s.decided); n > mostDecided || n < mostDecided/2 || len(s.pending) != 0 {
		t.Errorf("%d are decided, %d wait", n, len(s.pending))
	}
	found := s.requests("", uuid.Nil)
	if !found[0].at.Equal(time.Unix(3*mostDecided-1, 0)) || found[0].id == found[1].id {
		t.Errorf("the first are %v and %v", found[0], found[1])
	}
	for n := range 3 * mostPending {
		s.count(event("session.more_requested", n))
		s.count(event("session.limit_warning", n))
	}
	wantAtMost(t, "requests", len(s.pending), mostPending)
	wantAtMost(t, "sessions", len(s.near), mostNear)
}

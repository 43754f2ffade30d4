package client_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remit/client"
	"remit/money"
)

// ledger is a service with one session. It keeps exact totals of charges and leases, as the API describes them. Its transport
// needs no network, so tests run in a synctest bubble.
type ledger struct {
	maxActions int64
	maxValue   money.MicroUSD
	maxLease   int64                               // seconds
	decide     func(b *ledger, actions int64)      // on a request for more; nil: it stays undecided
	fault      func(n int, place string) (f fault) // of the nth request of a kind, from 1; nil: none
	down       atomic.Bool                         // every request is refused: 503
	delay      atomic.Int64                        // of every request

	mu       sync.Mutex
	actions  int64          // used, with all of what leases hold
	value    money.MicroUSD // the same
	status   string
	leases   map[string]*fakeLease
	outcomes map[string]outcome
	counts   map[string]int
	types    map[string]int64 // actions that settlements reported
	largest  int64            // lease in actions
	late     int
	granted  int64    // actions, of the last request for more
	problems []string // requests that a lease must not send
}

type fakeLease struct {
	actions int64
	value   money.MicroUSD
	expires time.Time
	settled string         // the numbers; empty: it is not
	answer  map[string]any // to the settlement
	gone    time.Time      // when the answer is forgotten
	expired bool
}

type outcome struct {
	body   string
	status int
	answer string
}

// fault is what the network does to a request.
type fault struct {
	refuse int           // a status to answer with at once; 0: none
	code   string        // of that answer
	lose   bool          // the response, when the request was handled
	before time.Duration // it arrives
	after  time.Duration // it was handled
}

func newLedger(actions int64, value money.MicroUSD) *ledger {
	return &ledger{
		maxActions: actions, maxValue: value, maxLease: 3600, status: "active",
		leases: map[string]*fakeLease{}, outcomes: map[string]outcome{}, counts: map[string]int{}, types: map[string]int64{},
	}
}

// change changes what the service has.
func (b *ledger) change(what func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	what()
}

// session is the session as a new process sees it.
func (b *ledger) session(t testing.TB) *client.Session {
	t.Helper()
	c := must(client.New("http://remit.test", client.Options{HTTPClient: &http.Client{Transport: b}}))(t)
	return c.Agent("a1", "secret").Session("s1")
}

func (b *ledger) lease(t testing.TB, o client.LeaseOptions) *client.Lease {
	t.Helper()
	return must(b.session(t).Lease(t.Context(), o))(t)
}

// place names the kind of a request.
func place(r *http.Request) string {
	switch path := r.URL.Path; {
	case path == exchangePath || path == refreshPath:
		return "token"
	case strings.HasSuffix(path, "/settle"):
		return "settle"
	case strings.HasSuffix(path, "/leases"):
		return "grant"
	case strings.HasSuffix(path, "/actions"):
		return "charge"
	case strings.HasSuffix(path, "/requests"):
		return "ask"
	case strings.Contains(path, "/requests/"):
		return "decision"
	default:
		return "read"
	}
}

func (b *ledger) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	kind := place(r)
	b.mu.Lock()
	b.counts[kind]++
	var f fault
	if b.fault != nil {
		f = b.fault(b.counts[kind], kind)
	}
	b.mu.Unlock()
	f.before += time.Duration(b.delay.Load())
	if b.down.Load() {
		f = fail()
	}
	if !sleep(r, f.before) {
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	if f.refuse != 0 {
		answer(w, f.refuse, map[string]any{"code": f.code, "status": f.refuse})
	} else {
		b.serve(w, r, kind, string(body))
	}
	if !sleep(r, f.after) {
		return nil, r.Context().Err()
	}
	if f.lose {
		return nil, errReset
	}
	return w.Result(), nil
}

func sleep(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return r.Context().Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
		return false
	}
}

func answer(w *httptest.ResponseRecorder, status int, body any) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

// serve answers once for each idempotency key.
func (b *ledger) serve(w *httptest.ResponseRecorder, r *http.Request, kind, body string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if kind == "token" {
		io.WriteString(w, pair(1).body)
		return
	}
	b.expire()
	key := r.Header.Get("Idempotency-Key")
	if first, ok := b.outcomes[key]; key != "" && ok {
		if first.body != r.URL.Path+body {
			answer(w, 422, map[string]any{"code": "idempotency_key_reused"})
			return
		}
		w.WriteHeader(first.status)
		io.WriteString(w, first.answer)
		return
	}
	switch kind {
	case "read":
		answer(w, 200, b.info())
	case "charge":
		b.charge(w, body)
	case "ask":
		b.ask(w, body)
	case "decision":
		answer(w, 200, map[string]any{"id": "r1", "status": "approved", "granted_actions": b.granted})
	case "grant":
		b.grant(w, body)
	case "settle":
		b.settle(w, strings.Split(r.URL.Path, "/")[3], key, body)
	}
	if key != "" {
		b.outcomes[key] = outcome{r.URL.Path + body, w.Code, w.Body.String()}
	}
}

// expire counts what expired unsettled as spent, which it is already.
func (b *ledger) expire() {
	for _, l := range b.leases {
		l.expired = l.expired || l.settled == "" && !time.Now().Before(l.expires)
	}
}

func (b *ledger) info() map[string]any {
	return map[string]any{
		"id": "s1", "status": b.status, "max_actions": b.maxActions, "action_count": b.actions, "max_value_usd": b.maxValue,
		"value_used_usd": b.value, "value_held_usd": 0, "remaining_actions": b.maxActions - b.actions,
		"remaining_value_usd": b.maxValue - b.value, "max_lease_seconds": b.maxLease,
	}
}

// refuse writes a refusal, if the session is not active or the amount does not fit.
func (b *ledger) refuse(w *httptest.ResponseRecorder, actions int64, value money.MicroUSD) bool {
	body := b.info()
	switch {
	case b.status != "active":
		answer(w, 409, map[string]any{"code": "session_not_active", "session_status": b.status})
		return true
	case actions > b.maxActions-b.actions:
		body["limit"] = "max_actions"
	case value > b.maxValue-b.value:
		body["limit"] = "max_value_usd"
	default:
		return false
	}
	body["code"] = "session_limit_reached"
	answer(w, 403, body)
	return true
}

func (b *ledger) charge(w *httptest.ResponseRecorder, body string) {
	asked := struct {
		Count int64          `json:"count"`
		Value money.MicroUSD `json:"value_usd"`
	}{Count: 1}
	if err := json.Unmarshal([]byte(body), &asked); err != nil {
		answer(w, 400, map[string]any{"code": "invalid_request"})
		return
	}
	if b.refuse(w, asked.Count, asked.Value) {
		return
	}
	b.actions += asked.Count
	b.value += asked.Value
	answer(w, 200, b.info())
}

// ask approves a request for more at once.
func (b *ledger) ask(w *httptest.ResponseRecorder, body string) {
	var more struct {
		AddActions int64 `json:"add_actions"`
	}
	if err := json.Unmarshal([]byte(body), &more); err != nil || more.AddActions < 1 {
		b.problems = append(b.problems, "a request for more: "+body)
	}
	b.decide(b, more.AddActions)
	b.granted = more.AddActions
	answer(w, 201, map[string]any{"id": "r1", "status": "pending"})
}

// asked is the request for a lease.
type asked struct {
	MaxActions int64          `json:"max_actions"`
	MaxValue   money.MicroUSD `json:"max_value_usd"`
	ExpiresIn  int64          `json:"expires_in_seconds"`
	Partial    bool           `json:"partial"`
}

func (b *ledger) grant(w *httptest.ResponseRecorder, body string) {
	var a asked
	if err := json.Unmarshal([]byte(body), &a); err != nil || a.MaxActions+int64(a.MaxValue) == 0 || a.ExpiresIn < 1 || !a.Partial {
		b.problems = append(b.problems, "a grant asks for "+body)
	}
	if b.maxLease == 0 {
		answer(w, 403, map[string]any{"code": "session_limit_reached", "limit": "max_lease_seconds"})
		return
	}
	if b.refuse(w, min(a.MaxActions, 1), min(a.MaxValue, 1)) {
		return
	}
	answer(w, 201, b.open(a))
}

func (b *ledger) open(a asked) map[string]any {
	l := &fakeLease{
		actions: min(a.MaxActions, b.maxActions-b.actions), value: min(a.MaxValue, b.maxValue-b.value),
		expires: time.Now().Add(time.Duration(min(a.ExpiresIn, b.maxLease)) * time.Second),
	}
	b.actions += l.actions
	b.value += l.value
	b.largest = max(b.largest, l.actions)
	id := fmt.Sprint("l", len(b.leases)+1)
	b.leases[id] = l
	return map[string]any{
		"id": id, "session_id": "s1", "status": "open", "max_actions": l.actions, "max_value_usd": l.value,
		"created_at": time.Now(), "expires_at": l.expires,
	}
}

// settle answers the same numbers for a lease as it did the first time, for an hour. A settlement has no key.
func (b *ledger) settle(w *httptest.ResponseRecorder, id, key, body string) {
	var a struct {
		Actions int64          `json:"action_count"`
		Value   money.MicroUSD `json:"value_used_usd"`
		Types   map[string]struct {
			Actions int64          `json:"action_count"`
			Value   money.MicroUSD `json:"value_usd"`
		} `json:"by_action_type"`
		Renew *asked `json:"renew"`
	}
	l := b.leases[id]
	if l != nil && l.settled != "" && !time.Now().Before(l.gone) {
		answer(w, 404, map[string]any{"code": "not_found"})
		return
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil || l == nil || key != "" {
		b.problems = append(b.problems, "a settlement of "+id+": "+body)
		answer(w, 404, map[string]any{"code": "not_found"})
		return
	}
	sum, value := int64(0), money.MicroUSD(0)
	for name, u := range a.Types {
		b.types[name] += u.Actions
		sum, value = sum+u.Actions, value+u.Value
	}
	numbers := fmt.Sprint(a.Actions, a.Value)
	if l.settled != "" && l.settled != numbers || a.Actions > l.actions || a.Value > l.value ||
		a.Types != nil && (sum != a.Actions || value != a.Value || len(a.Types) > 64) {
		b.problems = append(b.problems, "a settlement of "+id+": "+body)
	}
	if l.settled != "" {
		answer(w, 200, l.answer)
		return
	}
	b.actions -= l.actions - a.Actions
	b.value -= l.value - a.Value
	l.settled, l.gone = numbers, time.Now().Add(time.Hour)
	if l.expired {
		b.late++
	}
	renewed, refusal := any(nil), any(nil)
	if a.Renew != nil {
		check := httptest.NewRecorder()
		if b.refuse(check, min(a.Renew.MaxActions, 1), min(a.Renew.MaxValue, 1)) {
			refusal = map[string]any{"code": "session_limit_reached"}
		} else {
			renewed = b.open(*a.Renew)
		}
	}
	l.answer = map[string]any{"id": id, "session_id": "s1", "status": "settled", "renewed": renewed, "refusal": refusal}
	answer(w, 200, l.answer)
}

// check fails the test for requests that a lease must not send, and returns what is used.
func (b *ledger) check(t testing.TB) (actions int64, value money.MicroUSD) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		t.Error(p)
	}
	if b.actions > b.maxActions || b.value > b.maxValue || b.actions < 0 || b.value < 0 {
		t.Errorf("%d of %d actions and %s of %s are used", b.actions, b.maxActions, b.value, b.maxValue)
	}
	return b.actions, b.value
}

// openLeases returns the number of leases that were not settled.
func (b *ledger) openLeases() (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.leases {
		if l.settled == "" {
			n++
		}
	}
	return n
}

func (b *ledger) count(kind string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[kind]
}

// calls returns the number of requests of all kinds.
func (b *ledger) calls() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, count := range b.counts {
		n += count
	}
	return n
}

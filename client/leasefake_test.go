package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
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
	fault      func(n int, place string) (f fault) // of the nth request of a kind, from 1; nil: none

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
	settled string    // the numbers; empty: it is not
	answer  reaction  // to the settlement
	gone    time.Time // when the answer is forgotten
}

// outcome is the answer to the first request with an idempotency key.
type outcome struct {
	request string
	answer  reaction
}

type fault struct {
	instead reaction      // of the service's answer, if it has a status
	lose    bool          // the response, when the request was handled
	before  time.Duration // it arrives
	after   time.Duration // it was handled
}

func fail() fault { return fault{instead: refusal(503, "unavailable")} }

func newLedger(actions int64, value money.MicroUSD) *ledger {
	return &ledger{
		maxActions: actions, maxValue: value, maxLease: 3600, status: "active",
		leases: map[string]*fakeLease{}, outcomes: map[string]outcome{}, counts: map[string]int{}, types: map[string]int64{},
	}
}

func (b *ledger) change(what func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	what()
}

// meets does this to all requests from now on.
func (b *ledger) meets(f fault) {
	b.change(func() { b.fault = func(int, string) fault { return f } })
}

func (b *ledger) session(t testing.TB) *client.Session {
	t.Helper()
	c := must(client.New("http://remit.test", client.Options{HTTPClient: &http.Client{Transport: b}}))(t)
	return c.Agent("a1", "secret").Session("s1")
}

func (b *ledger) lease(t testing.TB, o client.LeaseOptions) *client.Lease {
	t.Helper()
	return must(b.session(t).Lease(t.Context(), o))(t)
}

func place(path string) string {
	switch {
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
	got := received(r)
	kind := place(got.path)
	b.mu.Lock()
	b.counts[kind]++
	b.counts["any"]++
	var f fault
	if b.fault != nil {
		f = b.fault(b.counts[kind], kind)
	}
	b.mu.Unlock()
	if !sleep(r, f.before) {
		return nil, r.Context().Err()
	}
	does := f.instead
	if does.status == 0 {
		does = b.serve(kind, got)
	}
	does.delay = f.after
	if f.lose {
		does.err = errReset
	}
	return does.answer(r)
}

func answered(status int, body any) reaction {
	text, _ := json.Marshal(body)
	return reaction{status: status, body: string(text)}
}

// serve answers once for each idempotency key.
func (b *ledger) serve(kind string, r seen) (does reaction) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := r.header.Get("Idempotency-Key")
	if first, ok := b.outcomes[key]; key != "" && ok {
		if first.request != r.path+r.body {
			return refusal(422, "idempotency_key_reused")
		}
		return first.answer
	}
	switch kind {
	case "token":
		return pair(1)
	case "read":
		does = answered(200, b.info())
	case "charge":
		does = b.charge(r.body)
	case "ask":
		does = b.ask(r.body)
	case "decision":
		does = answered(200, map[string]any{"id": "r1", "status": "approved", "granted_actions": b.granted})
	case "grant":
		does = b.grant(r.body)
	case "settle":
		does = b.settle(strings.Split(r.path, "/")[3], key, r.body)
	}
	if key != "" {
		b.outcomes[key] = outcome{r.path + r.body, does}
	}
	return does
}

func (b *ledger) info() map[string]any {
	return map[string]any{
		"id": "s1", "status": b.status, "max_actions": b.maxActions, "action_count": b.actions, "max_value_usd": b.maxValue,
		"value_used_usd": b.value, "value_held_usd": 0, "remaining_actions": b.maxActions - b.actions,
		"remaining_value_usd": b.maxValue - b.value, "max_lease_seconds": b.maxLease,
	}
}

// refuse returns a refusal, if the session is not active or the amount does not fit. Otherwise its status is 0.
func (b *ledger) refuse(actions int64, value money.MicroUSD) reaction {
	body := b.info()
	switch {
	case b.status != "active":
		return answered(409, map[string]any{"code": "session_not_active", "session_status": b.status})
	case actions > b.maxActions-b.actions:
		body["limit"] = "max_actions"
	case value > b.maxValue-b.value:
		body["limit"] = "max_value_usd"
	default:
		return reaction{}
	}
	body["code"] = "session_limit_reached"
	return answered(403, body)
}

func (b *ledger) charge(body string) reaction {
	asked := struct {
		Count int64          `json:"count"`
		Value money.MicroUSD `json:"value_usd"`
	}{Count: 1}
	if err := json.Unmarshal([]byte(body), &asked); err != nil {
		return refusal(400, "invalid_request")
	}
	if no := b.refuse(asked.Count, asked.Value); no.status != 0 {
		return no
	}
	b.actions += asked.Count
	b.value += asked.Value
	return answered(200, b.info())
}

// ask approves a request for more at once.
func (b *ledger) ask(body string) reaction {
	var more struct {
		AddActions int64 `json:"add_actions"`
	}
	if err := json.Unmarshal([]byte(body), &more); err != nil || more.AddActions < 1 {
		b.problems = append(b.problems, "a request for more: "+body)
	}
	b.maxActions += more.AddActions
	b.granted = more.AddActions
	return answered(201, map[string]any{"id": "r1", "status": "pending"})
}

type asked struct {
	MaxActions int64          `json:"max_actions"`
	MaxValue   money.MicroUSD `json:"max_value_usd"`
	ExpiresIn  int64          `json:"expires_in_seconds"`
	Partial    bool           `json:"partial"`
}

func (b *ledger) grant(body string) reaction {
	var a asked
	if err := json.Unmarshal([]byte(body), &a); err != nil || a.MaxActions+int64(a.MaxValue) == 0 || a.ExpiresIn < 1 || !a.Partial {
		b.problems = append(b.problems, "a grant asks for "+body)
	}
	if no := b.refuse(min(a.MaxActions, 1), min(a.MaxValue, 1)); no.status != 0 {
		return no
	}
	return answered(201, b.open(a))
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

// settle answers the same numbers for a lease as it did the first time, for an hour. A settlement has no key. What expired
// unsettled is spent until then.
func (b *ledger) settle(id, key, body string) reaction {
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
		return refusal(404, "not_found")
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil || l == nil || key != "" {
		b.problems = append(b.problems, "a settlement of "+id+": "+body)
		return refusal(404, "not_found")
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
		return l.answer
	}
	b.actions -= l.actions - a.Actions
	b.value -= l.value - a.Value
	l.settled, l.gone = numbers, time.Now().Add(time.Hour)
	if !time.Now().Before(l.expires) {
		b.late++
	}
	settled := map[string]any{"id": id, "session_id": "s1", "status": "settled"}
	if a.Renew != nil && b.refuse(min(a.Renew.MaxActions, 1), min(a.Renew.MaxValue, 1)).status != 0 {
		settled["refusal"] = map[string]any{"code": "session_limit_reached"}
	} else if a.Renew != nil {
		settled["renewed"] = b.open(*a.Renew)
	}
	l.answer = answered(200, settled)
	return l.answer
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

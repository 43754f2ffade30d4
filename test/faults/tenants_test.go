//go:build long

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"remit/internal/redisproc"
)

// member is an organization with one agent and one session.
type member struct {
	key, agent, secret, access, session string
}

// join creates an organization with an agent, a token and a session.
func (c *Caller) join(t *testing.T, instance string) *member {
	t.Helper()
	m := &member{}
	m.key = c.want(t, instance, m.post("/v1/organizations", object{"name": "a tenant"}))["api_key"]
	created := c.want(t, instance, m.post("/v1/agents", object{"name": "agent", "scopes": []string{}}))
	m.agent, m.secret = created["id"], created["secret"]
	m.access = c.want(t, instance, exchange(m.agent, m.secret))["access_token"]
	m.session = c.want(t, instance, m.post("/sessions", object{"agent_id": m.agent, "max_actions": 1_000_000}))["id"]
	return m
}

func (m *member) post(path string, body any) Request {
	return Request{Method: http.MethodPost, Path: path, Body: body, APIKey: m.key}
}

func (m *member) begin(state any) Request {
	return Request{Method: http.MethodPost, Path: "/v1/transactions", Token: m.access, Body: object{"action_type": "call", "pre_state": state}}
}

// want returns the text members of a successful answer.
func (c *Caller) want(t *testing.T, instance string, r Request) map[string]string {
	t.Helper()
	status, _, body, err := c.send(instance, r)
	if err != nil || status >= 300 {
		t.Fatalf("%s: %d %s %v", r.Path, status, body, err)
	}
	fields, texts := map[string]any{}, map[string]string{}
	_ = json.Unmarshal(body, &fields) // a missing field is ""
	for name, value := range fields {
		texts[name], _ = value.(string)
	}
	return texts
}

// tally counts answers by status and code.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (a *tally) add(path string, status int, body []byte, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts == nil {
		a.counts = map[string]int{}
	}
	switch {
	case err != nil:
		a.counts[path+" "+err.Error()]++
	case status >= 300:
		a.counts[fmt.Sprint(path, " ", status, " ", problemCode(status, body))]++
	default:
		a.counts["ok"]++
	}
}

// refusedState is the count of large states that the quota refused.
const refusedState = "/v1/transactions 403 quota_exceeded"

func (a *tally) of(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[what]
}

// hostileRequests fill Redis with the largest allowed requests, and with many small ones.
func (m *member) hostileRequests() []func(n int) Request {
	state := json.RawMessage(`{"s":"` + strings.Repeat("x", 65_000) + `"}`)
	large := func(int) Request { return m.begin(state) }
	return []func(n int) Request{large, large, large, large, large, large, large, func(n int) Request {
		switch n % 4 {
		case 0:
			return exchange(m.agent, m.secret)
		case 1:
			return m.post("/v1/agents", object{"name": "agent", "scopes": []string{}, "metadata": object{"x": strings.Repeat("x", 16_000)}})
		case 2:
			return m.post("/sessions", object{"agent_id": m.agent, "metadata": object{"x": strings.Repeat("x", 16_000)}})
		}
		r := m.begin(object{})
		r.Key = "key-" + strconv.Itoa(n)
		return r
	}}
}

// honestRequests are the calls of an honest tenant in one round.
func (m *member) honestRequests(n int) []Request {
	keyed := Request{Method: http.MethodPost, Path: "/sessions/" + m.session + "/actions", Token: m.access, Body: object{"value_usd": 0}}
	keyed.Key = "key-" + strconv.Itoa(n)
	return []Request{
		exchange(m.agent, m.secret), keyed, m.begin(object{"before": n}),
		m.post("/sessions", object{"agent_id": m.agent}),
		{Method: http.MethodPost, Path: "/sessions/" + m.session + "/actions", Token: m.access, Body: object{"value_usd": 0}},
	}
}

// tenantPause is how long an honest tenant rests between two rounds.
const tenantPause = 500 * time.Millisecond

// startTenants makes every member call the instances until stop: the last one hostile requests at full rate, the others honest
// ones.
func startTenants(t *testing.T, caller *Caller, instances []*Instance, members []*member, hostile, honest *tally) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	attacker := len(members) - 1
	for i, next := range members[attacker].hostileRequests() {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				r := next(n)
				status, _, body, err := caller.send(instances[(i+n)%2].URL, r)
				hostile.add(r.Path, status, body, err)
			}
		})
	}
	for i, m := range members[:attacker] {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				for _, r := range m.honestRequests(n) {
					status, _, body, err := caller.send(instances[(i+n)%2].URL, r)
					honest.add(strings.Replace(r.Path, m.session, "{id}", 1), status, body, err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(tenantPause):
				}
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); group.Wait() })
	t.Cleanup(stop)
	return stop
}

// One organization at full rate fills a Redis of 300 MB in seconds. Its quota must refuse it, and no other organization
// may ever be refused.
func TestQuotaRefusesAHostileOrganizationAndNoOther(t *testing.T) {
	const tenants = 20
	lasts := time.Duration(rounds(5)) * time.Second // after the first refusal
	redis := StartRedis(t, redisproc.Config{})
	limitMemory(t, redis, "300mb")
	var instances []*Instance
	for range 2 {
		instances = append(instances, StartInstance(t, redis.URL(), "--rate-limits=on"))
	}
	caller := NewCaller(nil)
	defer caller.Close()
	var members []*member
	for n := range tenants + 1 {
		m := caller.join(t, instances[n%2].URL)
		caller.want(t, instances[n%2].URL, m.begin(object{"s": strings.Repeat("x", 40_000)})) // enough for its usage to be counted
		members = append(members, m)
	}
	hostile, honest := tally{}, tally{}
	stop := startTenants(t, caller, instances, members, &hostile, &honest)
	waitUntil(t, 2*time.Minute, "the quota refuses it", func() bool { return hostile.of(refusedState) > 0 })
	rest := time.NewTimer(lasts)
	<-rest.C
	stop()
	used, most := memoryOf(t, redis, "used_memory"), memoryOf(t, redis, "maxmemory")
	t.Logf("hostile: %v; others: %v; %d of %d MB", hostile.counts, honest.counts, used>>20, most>>20)
	done := honest.counts["ok"]
	for refusal, times := range maps.All(honest.counts) {
		if refusal != "ok" {
			t.Errorf("%s: %d of %d", refusal, times, done)
		}
	}
	if done < tenants*10 {
		t.Errorf("the others completed only %d calls", done)
	}
	if used < most*6/10 {
		t.Errorf("it did not fill its share: %d of %d MB", used>>20, most>>20)
	}
	if used > most*8/10 {
		t.Errorf("Redis is nearly full: %d of %d MB", used>>20, most>>20)
	}
}

func memoryOf(t *testing.T, r *Redis, name string) int64 {
	t.Helper()
	for line := range strings.Lines(r.Client().Info(t.Context(), "memory").Val()) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), name+":"); found {
			number, _ := strconv.ParseInt(value, 10, 64)
			return number
		}
	}
	t.Fatalf("INFO has no %s", name)
	return 0
}

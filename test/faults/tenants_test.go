//go:build long

package faults

import (
	"context"
	"encoding/json"
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
	body := object{"action_type": "call", "pre_state": state}
	return Request{Call: Call{Kind: Begin}, Method: http.MethodPost, Path: "/v1/transactions", Token: m.access, Body: body}
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

func (m *member) honestRequests(n int) []Request {
	charge := ChargeSession(&Agent{Access: m.access}, m.session, 1, 0)
	keyed := charge
	keyed.Key = "key-" + strconv.Itoa(n)
	return []Request{exchange(m.agent, m.secret), keyed, m.begin(object{"before": n}), m.post("/sessions", object{"agent_id": m.agent}), charge}
}

// startTenants makes every member call the instances until stop: the last one hostile requests at full rate, the others honest
// ones.
func startTenants(t *testing.T, instances []*Instance, members []*member, hostile, honest *Caller) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	do := func(c *Caller, n int, r Request) {
		r.Note = nothing // answers are large
		c.Do(instances[n%2].URL, r)
	}
	attacker := len(members) - 1
	for i, next := range members[attacker].hostileRequests() {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				do(hostile, i+n, next(n))
			}
		})
	}
	for i, m := range members[:attacker] {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				for _, r := range m.honestRequests(n) {
					do(honest, i+n, r)
				}
				pauseFor(ctx, 500*time.Millisecond)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); group.Wait() })
	t.Cleanup(stop)
	return stop
}

func pauseFor(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
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
	hostile, honest := NewCaller(NewHistory()), NewCaller(NewHistory())
	t.Cleanup(hostile.Close)
	t.Cleanup(honest.Close)
	var members []*member
	for n := range tenants + 1 {
		m := honest.join(t, instances[n%2].URL)
		honest.want(t, instances[n%2].URL, m.begin(object{"s": strings.Repeat("x", 40_000)})) // enough for its usage to be counted
		members = append(members, m)
	}
	stop := startTenants(t, instances, members, hostile, honest)
	waitEvery(t, 50*time.Millisecond, 2*time.Minute, "the quota refuses it", func() bool {
		return hostile.history.Count(func(c Call) bool { return c.Kind == Begin && c.Code == "quota_exceeded" }) > 0
	})
	rest := time.NewTimer(lasts)
	<-rest.C
	stop()
	info := redis.Client().InfoMap(t.Context(), "memory")
	used, most := must(strconv.Atoi(info.Item("Memory", "used_memory")))(t), must(strconv.Atoi(info.Item("Memory", "maxmemory")))(t)
	calls := honest.history.Calls()
	t.Logf("hostile: %s; others: %s; %d of %d MB", Summary(hostile.history.Calls()), Summary(calls), used>>20, most>>20)
	if done := honest.history.Count(func(c Call) bool { return c.Outcome == OK }); done < len(calls) || done < tenants*10 {
		t.Errorf("of %d calls of the others %d were acknowledged", len(calls), done)
	}
	if used < most*6/10 {
		t.Errorf("it did not fill its share: %d of %d MB", used>>20, most>>20)
	}
	if used > most*8/10 {
		t.Errorf("Redis is nearly full: %d of %d MB", used>>20, most>>20)
	}
}

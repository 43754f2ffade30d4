package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
)

// batchOf is the body of a batch.
func batchOf(items ...any) fields { return fields{"actions": items} }

// item is what a batch answers to one of its items.
type item struct {
	status int
	body   fields
}

// items returns the outcome of each item of a batch, which must be as many as were sent.
func (r *response) items(count int) []item {
	r.t.Helper()
	all := []item{}
	for _, result := range r.is(200).array() {
		if len(result) != 2 {
			r.t.Errorf("%s: a result with other members than status and body: %v", r.what, result)
		}
		body, _ := result["body"].(map[string]any)
		status := 0
		fmt.Sscan(fmt.Sprint(result["status"]), &status)
		all = append(all, item{status, body})
	}
	if len(all) != count {
		r.t.Fatalf("%s: %d results of %d items", r.what, len(all), count)
	}
	return all
}

// wantItem fails the test unless the item has this status, a problem this code, and a 400 names these fields.
func wantItem(t *testing.T, of *response, i item, status int, code string, named ...string) {
	t.Helper()
	if i.status != status || code != "" && (i.body["code"] != code || i.body["status"] != num(status)) {
		t.Errorf("an item is %d %v, want %d %s", i.status, i.body, status, code)
		return
	}
	if code != "" && i.body["request_id"] != of.header.Get("X-Request-Id") {
		t.Errorf("an item's problem has the request id %v, want %s", i.body["request_id"], of.header.Get("X-Request-Id"))
	}
	errors, _ := i.body["errors"].([]any)
	for n, name := range named {
		if n >= len(errors) || errors[n].(map[string]any)["field"] != name {
			t.Errorf("an item names %v, want %q", errors, named)
			return
		}
	}
	if len(errors) != len(named) {
		t.Errorf("an item names %v, want %q", errors, named)
	}
}

func TestABatchHas1To500Items(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		for _, as := range []option{asKey(w.key), asAgent(w.exchange().access)} {
			var sessions []string
			for range 7 {
				sessions = append(sessions, w.newSession(fields{"max_actions": 72, "max_value_usd": 1}))
			}
			before := w.session(sessions[0])
			items := []any{}
			for i := range 501 {
				items = append(items, fields{"session_id": sessions[i%7], "value_usd": num("0.000001")})
			}
			w.post("/v1/actions", batchOf(items...), as).invalid("actions")
			w.post("/v1/actions", batchOf(), as).invalid("actions")
			w.post("/v1/actions", fields{}, as).invalid("actions")
			w.post("/v1/actions", fields{}, as).invalid("actions")
			w.wantUsage(before, nil)

			// 3 sessions get 72 actions, 4 get 71.
			for i, answered := range w.post("/v1/actions", batchOf(items[:500]...), as).items(500) {
				if n := i/7 + 1; answered.status != 200 || answered.body["action_count"] != num(n) || answered.body["session_id"] != sessions[i%7] {
					t.Fatalf("item %d: %d %v", i, answered.status, answered.body)
				}
			}
			one := w.post("/v1/actions", batchOf(fields{"session_id": sessions[0]}), as)
			wantItem(t, one, one.items(1)[0], 403, "session_limit_reached")
			one = w.post("/v1/actions", batchOf(fields{"session_id": sessions[6]}), as)
			wantItem(t, one, one.items(1)[0], 200, "")
			w.wantUsage(before, fields{"action_count": 72, "value_used_usd": num("0.000072")})
		}
	})
}

// Each item is answered as if it had come alone: twins of each session are charged in a batch and one by one.
func TestEachItemOfABatchIsAnsweredAsAlone(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w, other := api.newTenant(), api.newTenant()
		active := func() string {
			id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5, "scopes": list("read")})
			w.begin(fields{"session_id": id, "value_usd": num("1.5")})
			return id
		}
		ended := func() string {
			id := w.newSession(nil)
			w.post("/sessions/"+id+"/end", nil, asKey(w.key)).is(200)
			return id
		}
		foreign := func() string { return other.newSession(nil) }
		cases := []struct {
			session func() string
			charge  fields
			status  int
		}{
			{active, fields{}, 200},
			{active, fields{"action_type": "call", "value_usd": num("3.500000"), "count": 9, "scope": "read"}, 200},
			{active, fields{"value_usd": num("3.500001")}, 403},
			{active, fields{"count": 10}, 403},
			{active, fields{"scope": "write"}, 403},
			{active, fields{"scope": "admin"}, 403},
			{ended, fields{"value_usd": 1}, 403},
			{foreign, fields{"value_usd": 1}, 404},
			{uuid.NewString, fields{"value_usd": 1}, 404},
			{active, fields{"count": 0, "scope": "", "action_type": long(201)}, 400},
			{active, fields{"count": "1"}, 400},
			{active, fields{"count": nil}, 400},
			{active, fields{"value_usd": -1}, 400},
			{active, fields{"value_usd": num("0.0000001")}, 400},
			{active, fields{"value_usd": "1"}, 400},
			{active, fields{"scope": "a b"}, 400},
			{active, fields{"max_value": 1}, 400},
			{active, fields{"scope": list("read")}, 400},
		}
		for name, as := range map[string]option{"by key": asKey(w.key), "by token": asAgent(w.exchange().access)} {
			t.Run(name, func(t *testing.T) {
				w, items := w.through(w.client.in(t)), []any{}
				for _, c := range cases {
					items = append(items, c.charge.with(fields{"session_id": c.session()}))
				}
				batch := w.post("/v1/actions", batchOf(items...), as)
				for i, got := range batch.items(len(cases)) {
					c := cases[i]
					alone := w.post("/sessions/"+c.session()+"/actions", c.charge, as).is(c.status)
					want := alone.object()
					for _, own := range []string{"session_id", "expires_at", "request_id"} {
						if value, has := want[own]; has {
							want[own] = matcher{"like " + fmt.Sprint(value), func(any) bool { return true }}
						}
					}
					if found := differences(got.body, want); got.status != c.status || found != "" {
						t.Errorf("%v: %d, alone %d; %s", c.charge, got.status, c.status, found)
					}
					if id, charged := got.body["session_id"]; charged && id != items[i].(fields)["session_id"] {
						t.Errorf("%v: the session is %v", c.charge, id)
					}
					if id, refused := got.body["request_id"]; refused && id != batch.header.Get("X-Request-Id") {
						t.Errorf("%v: the request id is %v", c.charge, id)
					}
				}
			})
		}
		for _, id := range other.get("/sessions", asKey(other.key)).is(200).array() {
			if id["action_count"] != num(0) {
				t.Errorf("a foreign session was charged: %v", id)
			}
		}
	})
}

func TestTheItemsOfOneSessionAreChargedInOrder(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		for _, as := range []option{asKey(w.key), asAgent(w.exchange().access)} {
			a, b := w.newSession(fields{"max_actions": 4, "max_value_usd": 1}), w.newSession(fields{"max_actions": 1})
			steps := []struct {
				item   fields
				status int
				count  int // of its session, after it
			}{
				{fields{"session_id": a, "value_usd": num("0.4")}, 200, 1},
				{fields{"session_id": b}, 200, 1},
				{fields{"session_id": a, "count": 4}, 403, 1},
				{fields{"session_id": a, "count": 2, "value_usd": num("0.5")}, 200, 3},
				{fields{"session_id": b}, 403, 1},
				{fields{"session_id": strings.ToUpper(a), "value_usd": num("0.100001")}, 403, 3},
				{fields{"session_id": a, "value_usd": num("0.1")}, 200, 4},
				{fields{"session_id": a}, 403, 4},
			}
			items := []any{}
			for _, step := range steps {
				items = append(items, step.item)
			}
			for i, got := range w.post("/v1/actions", batchOf(items...), as).items(len(steps)) {
				if step := steps[i]; got.status != step.status || got.body["action_count"] != num(step.count) {
					t.Errorf("item %d: %d %v, want %d and %d actions", i, got.status, got.body, step.status, step.count)
				}
			}
			if s := w.session(a); s["action_count"] != num(4) || s["value_used_usd"] != num(1) {
				t.Errorf("the session is %v", s)
			}
		}
	})
}

func TestAMalformedItemDoesNotHinderTheOthers(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		for _, as := range []option{asKey(w.key), asAgent(w.exchange().access)} {
			id := w.newSession(nil)
			good := fields{"session_id": id}
			items, named := []any{good}, [][]string{nil}
			for _, bad := range []struct {
				item  any
				names []string
			}{
				{"x", []string{""}}, {5, []string{""}}, {true, []string{""}}, {nil, []string{""}}, {[]any{}, []string{""}},
				{[]any{good}, []string{""}}, {fields{}, []string{"session_id"}}, {fields{"session_id": nil}, []string{"session_id"}},
				{fields{"session_id": 5}, []string{"session_id"}}, {fields{"session_id": id + "0"}, []string{"session_id"}},
				{fields{"session_id": ""}, []string{"session_id"}}, {fields{"count": 0}, []string{"session_id", "count"}},
				{good.with(fields{"id": id}), []string{"id"}}, {good.with(fields{"Count": 1}), []string{"Count"}},
				{good.with(fields{"count": 1001}), []string{"count"}}, {good.with(fields{"value_usd": num("1e400")}), []string{"value_usd"}},
				{good.with(fields{"scope": "é"}), []string{"scope"}},
			} {
				items, named = append(items, bad.item, good), append(named, bad.names, nil)
			}
			answered := w.post("/v1/actions", batchOf(items...), as)
			charged := 0
			for i, got := range answered.items(len(items)) {
				if named[i] != nil {
					wantItem(t, answered, got, 400, "invalid_request", named[i]...)
					continue
				}
				wantItem(t, answered, got, 200, "")
				if charged++; got.body["action_count"] != num(charged) {
					t.Errorf("item %d: %v actions, want %d", i, got.body["action_count"], charged)
				}
			}
			if got := w.session(id)["action_count"]; got != num(charged) {
				t.Errorf("%v actions, want %d", got, charged)
			}
			malformed := w.post("/v1/actions", batchOf("x"), as)
			wantItem(t, malformed, malformed.items(1)[0], 400, "invalid_request", "")
		}
	})
}

// What makes the body no JSON that all readers read alike concerns the whole.
func TestABodyThatIsMalformedInOneItemIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	good := string(mustEncode(fields{"session_id": w.newSession(nil)}))
	callers := []option{asKey(w.key), asAgent(w.exchange().access)}
	wantNothingWritten(t, api, func() {
		for _, as := range callers {
			w.post("/v1/actions", raw(`{"actions":[`+good+`,{"count":1,"count":1}]}`), as).invalid("actions[1].count")
			w.post("/v1/actions", raw(`{"actions":[`+good+`,{]}`), as).malformedAt(len(good) + 14)
			w.post("/v1/actions", raw(`{"actions":[`+good+`,`+strings.Repeat("[", 31)), as).malformedAt(len(good) + 13 + 30)
			w.post("/v1/actions", raw(`{"actions":[`+good+`],"session_id":"x"}`), as).invalid("session_id")
		}
	})
}

func TestABatchOfAnUnauthorizedCallerIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		id, tokens := w.newSession(nil), w.exchange()
		revoked := w
		revoked.agent = w.newAgent()
		dead := revoked.exchange()
		revokedSession := revoked.newSession(nil)
		ended := w.exchange()
		w.post("/v1/auth/revoke", fields{"refresh_token": ended.refresh}, asAgent(ended.access)).is(200)
		revoked.revoke()
		for _, items := range [][]any{{fields{"session_id": id}}, {fields{"session_id": revokedSession}, fields{"session_id": id}}, {"x"}} {
			for _, keyOrNot := range []option{anonymous, keyed("k")} {
				body := batchOf(items...)
				for _, as := range []option{asAgent(dead.access), asAgent(ended.access)} {
					there.post("/v1/actions", body, both(as, keyOrNot)).refused(401, "invalid_token")
				}
				there.post("/v1/actions", body, both(asAgent(tokens.access+"A"), keyOrNot)).refused(401, "invalid_token")
				there.post("/v1/actions", body, both(asKey(newKeyOf(uuid.MustParse(w.org))), keyOrNot)).refused(401, "invalid_api_key")
				there.post("/v1/actions", body, keyOrNot).refused(401, "missing_credentials")
			}
		}
		if got := w.session(id)["action_count"]; got != num(0) {
			t.Errorf("%v actions, want 0", got)
		}
		byKey := w.post("/v1/actions", batchOf(fields{"session_id": revokedSession}, fields{"session_id": id}), asKey(w.key))
		answered := byKey.items(2)
		wantItem(t, byKey, answered[0], 403, "session_not_active")
		wantItem(t, byKey, answered[1], 200, "")
	})
}

func TestAPartlyFailedBatchOfAnAgentReportsEachItem(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	api := start(t, setup{redis: "redis://" + mini.Addr(), mini: mini})
	w := api.newTenant()
	id, access := w.newSession(nil), asAgent(w.exchange().access)
	body := batchOf(fields{"session_id": id}, "x", fields{"session_id": w.newSession(nil)})
	for code, trouble := range map[string]func(bool){
		"outcome_unknown": func(on bool) { lost(mini, on) },
		"unavailable": func(on bool) {
			mini.SetError(map[bool]string{true: "LOADING Redis is loading the dataset in memory"}[on])
		},
	} {
		trouble(true)
		answered := w.post("/v1/actions", body, access)
		items := answered.items(3)
		wantItem(t, answered, items[0], 503, code)
		wantItem(t, answered, items[1], 400, "invalid_request", "")
		wantItem(t, answered, items[2], 503, code)
		if got := answered.header.Get("Retry-After"); got != "1" {
			t.Errorf("%s: Retry-After %q, want 1", code, got)
		}
		trouble(false)
	}
	if got := w.session(id)["action_count"]; got != num(0) {
		t.Errorf("%v actions, want 0", got)
	}
}

func TestRacingBatchesChargeExactlyTheLimits(t *testing.T) {
	api := onOneRedis(t)
	w := api.newTenant()
	there := w.through(api.another(t))
	as := []option{asKey(w.key), asAgent(w.exchange().access)}
	limits, items := map[string]int{}, []any{}
	for _, limit := range []int{10, 97, 200} {
		id := w.newSession(fields{"max_actions": limit})
		limits[id] = limit
		for range 5 {
			items = append(items, fields{"session_id": id, "value_usd": num("0.000003")})
		}
	}
	const racing = 48
	var answers [racing]*response
	var wait sync.WaitGroup
	for racer := range racing {
		wait.Go(func() {
			var err error
			if answers[racer], err = []tenant{w, there}[racer%2].try("POST", "/v1/actions", batchOf(items...), as[racer/2%2]); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	admitted := map[string]int{}
	for _, r := range answers {
		if r == nil {
			continue
		}
		r.t = t
		for i, got := range r.items(len(items)) {
			if got.status == 200 {
				admitted[items[i].(fields)["session_id"].(string)]++
			} else {
				wantItem(t, r, got, 403, "session_limit_reached")
			}
		}
	}
	for id, limit := range limits {
		if s := w.session(id); admitted[id] != limit || s["action_count"] != num(limit) {
			t.Errorf("%d were admitted and %v are stored, want %d", admitted[id], s["action_count"], limit)
		}
	}
}

// A batch takes what is due with it: a hold whose time is over makes room.
func TestABatchFindsTheRoomOfHoldsThatAreOver(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		id := w.newSession(fields{"max_value_usd": 5})
		w.begin(fields{"session_id": id, "value_usd": 5, "expires_in_seconds": 1})
		body := batchOf(fields{"session_id": id, "value_usd": 3}, fields{"session_id": id, "value_usd": 2})
		full := w.post("/v1/actions", body, asKey(w.key))
		wantItem(t, full, full.items(2)[0], 403, "session_limit_reached")
		time.Sleep(1100 * time.Millisecond) // what is read before would release it
		for i, got := range w.post("/v1/actions", body, asKey(w.key)).items(2) {
			if got.status != 200 || got.body["value_held_usd"] != num(0) {
				t.Errorf("item %d: %d %v", i, got.status, got.body)
			}
		}
	})
}

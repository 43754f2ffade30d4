package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		for _, as := range []option{asKey(w.key), asAgent(w.exchange().access)} {
			id := w.newSession(nil)
			items := slices.Repeat([]any{fields{"session_id": id}}, 501)
			for _, wrong := range []fields{batchOf(items...), batchOf(), {}} {
				w.post("/v1/actions", wrong, as).invalid("actions")
			}
			for i, answered := range w.post("/v1/actions", batchOf(items[:500]...), as).items(500) {
				if answered.status != 200 || answered.body["action_count"] != num(i+1) || answered.body["session_id"] != id {
					t.Fatalf("item %d: %d %v", i, answered.status, answered.body)
				}
			}
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
			{active, fields{"count": nil, "value_usd": num("0.0000001"), "max_value": 1}, 400},
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

func TestAMalformedItemDoesNotHinderTheOthers(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		for _, as := range []option{asKey(w.key), asAgent(w.exchange().access)} {
			id := w.newSession(nil)
			good := fields{"session_id": id}
			items, named := []any{good}, [][]string{nil}
			for _, bad := range []struct {
				item  any
				names []string
			}{
				{"x", []string{""}}, {5, []string{""}}, {nil, []string{""}}, {[]any{good}, []string{""}}, {fields{}, []string{"session_id"}},
				{fields{"session_id": nil}, []string{"session_id"}}, {fields{"session_id": 5}, []string{"session_id"}},
				{fields{"session_id": id + "0"}, []string{"session_id"}}, {fields{"count": 0}, []string{"session_id", "count"}},
				{good.with(fields{"Count": 1}), []string{"Count"}}, {good.with(fields{"count": 1001}), []string{"count"}},
				{good.with(fields{"value_usd": num("1e400")}), []string{"value_usd"}}, {good.with(fields{"scope": "é"}), []string{"scope"}},
				{good.with(fields{"scope": "read write"}), []string{"scope"}},
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
			wantEqual[any](t, "actions", w.session(id)["action_count"], num(charged))
			malformed := w.post("/v1/actions", batchOf("x"), as)
			wantItem(t, malformed, malformed.items(1)[0], 400, "invalid_request", "")
		}
	})
}

// What makes the body no JSON that all readers read alike concerns the whole.
func TestABodyThatIsMalformedInOneItemIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	w := onMiniredis(t, setup{}).newTenant()
	good := string(mustEncode(fields{"session_id": w.newSession(nil)}))
	callers := []option{asKey(w.key), asAgent(w.exchange().access)}
	wantNothingWritten(t, w.client, func() {
		for _, as := range callers {
			w.post("/v1/actions", raw(`{"actions":[`+good+`,{"count":1,"count":1}]}`), as).invalid("actions[1].count")
			w.post("/v1/actions", raw(`{"actions":[`+good+`,{]}`), as).malformedAt(len(good) + 14)
			w.post("/v1/actions", raw(`{"actions":[`+good+`,`+strings.Repeat("[", 31)), as).malformedAt(len(good) + 13 + 30)
			w.post("/v1/actions", raw(`{"actions":[`+good+`],"session_id":"x"}`), as).invalid("session_id")
		}
	})
}

func TestAPartlyFailedBatchOfAnAgentReportsEachItem(t *testing.T) {
	t.Parallel()
	w := onMiniredis(t, setup{}).newTenant()
	mini := w.on.mini
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
		wantEqual(t, code+": Retry-After", answered.header.Get("Retry-After"), "1")
		trouble(false)
	}
	wantEqual[any](t, "actions", w.session(id)["action_count"], num(0))
}

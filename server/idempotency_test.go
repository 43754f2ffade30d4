package server_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"remit/money"
	"remit/server"
	"remit/server/budgets"
)

func keyed(key string) option { return header("Idempotency-Key", key) }

// doer is a tenant whose agent may roll back, with its two credentials.
type doer struct {
	tenant
	byKey, byToken option
}

func (c *client) newDoer() doer {
	c.t.Helper()
	w := c.newTenant()
	w.agent = w.newAgentWith("read", "write", "transactions:rollback")
	return doer{w, asKey(w.key), asAgent(w.exchange().access)}
}

func (d doer) through(c *client) doer {
	d.client = c
	return d
}

// keyedRequest is a request that takes an Idempotency-Key, on objects of its own.
type keyedRequest struct {
	name, path string
	byToken    bool // else by API key
	as         option
	method     string // "" for POST
	body       fields
	status     int
	other      fields       // another body for the same path
	otherPath  string       // for the same operation on another object; "" without an object in the path
	samePath   string       // that means the same; "" for none
	moveOn     func(d doer) // changes what the request was about; nil for nothing
}

func (r keyedRequest) verb() string { return cmp.Or(r.method, "POST") }

// keyedRequests returns a request to each route for each of its callers.
func (d doer) keyedRequests() []keyedRequest {
	d.t.Helper()
	var all []keyedRequest
	add := func(name, path string, byToken bool, r keyedRequest) {
		r.name, r.path, r.byToken, r.as = name, path, byToken, d.byKey
		if byToken {
			r.as = d.byToken
		}
		if r.status == 0 {
			r.status = 200
		}
		if strings.Contains(path, "/sessions") {
			r.samePath, _ = strings.CutPrefix(path, "/v1")
			if r.samePath == path {
				r.samePath = "/v1" + path
			}
		}
		all = append(all, r)
	}
	session := func() string { return d.newSession(fields{"max_actions": 100, "max_value_usd": 50}) }
	begun := func(settings fields) string {
		return d.beginAs(d.byToken, settings.with(fields{"session_id": session(), "value_usd": 2})).is(201).text("id")
	}
	colleague := d.newAgent()
	for _, prefix := range withAndWithoutV1 {
		metadata := fields{"b": 1, "a": fields{"d": list("x", "y"), "c": "é"}}
		add("create session", prefix+"/sessions", false, keyedRequest{
			body:   fields{"agent_id": d.agent.id, "max_actions": 5, "metadata": metadata},
			status: 201, other: fields{"agent_id": colleague.id, "max_actions": 5, "metadata": metadata},
		})
	}
	for name, byToken := range map[string]bool{"by key": false, "by token": true} {
		id := session()
		add("charge "+name, "/sessions/"+id+"/actions", byToken, keyedRequest{
			body: fields{"value_usd": num("0.5"), "count": 2, "scope": "read"}, other: fields{"value_usd": num("0.5"), "count": 2},
			otherPath: "/sessions/" + session() + "/actions",
			moveOn:    func(d doer) { d.post("/sessions/"+id+"/end", nil, d.byKey).is(200) },
		})
		id, second := session(), session()
		add("batch "+name, "/v1/actions", byToken, keyedRequest{
			body: batchOf(fields{"session_id": id, "value_usd": 1}, fields{"session_id": second, "count": 2},
				fields{"session_id": id, "count": 3}, fields{"session_id": uuid.NewString()}, "x", fields{"session_id": id, "count": 1000}),
			other:  batchOf(fields{"session_id": id}),
			moveOn: func(d doer) { d.post("/sessions/"+id+"/end", nil, d.byKey).is(200) },
		})
		target := begun(nil)
		add("rollback "+name, "/v1/transactions/"+target+"/rollback", byToken, keyedRequest{
			body: fields{"reason": "r"}, other: fields{"reason": "s"}, otherPath: "/v1/transactions/" + begun(nil) + "/rollback",
		})
	}
	add("begin", "/v1/transactions", true, keyedRequest{
		body: fields{
			"action_type": "call", "pre_state": fields{"b": 1, "a": fields{"d": 1, "c": list("y", "x")}}, "session_id": session(),
			"value_usd": 1, "metadata": fields{"z": 1, "y": 2},
		},
		status: 201, other: fields{"action_type": "call", "pre_state": fields{"b": 1}},
	})
	target := begun(nil)
	add("commit", "/v1/transactions/"+target+"/commit", true, keyedRequest{
		body: fields{"value_usd": 3, "post_state": fields{"b": 1, "a": 2}}, other: fields{"value_usd": 3},
		otherPath: "/v1/transactions/" + begun(nil) + "/commit",
		moveOn:    func(d doer) { d.post("/v1/transactions/"+target+"/rollback", nil, d.byKey).is(200) },
	})
	held := begun(nil)
	add("change hold", "/v1/transactions/"+held, true, keyedRequest{
		method: "PATCH", body: fields{"value_usd": 3, "expires_in_seconds": 600}, other: fields{"value_usd": 4},
		otherPath: "/v1/transactions/" + begun(nil),
		moveOn:    func(d doer) { d.post("/v1/transactions/"+held+"/commit", nil, d.byToken).is(200) },
	})
	toppedUp := session()
	add("top up", "/sessions/"+toppedUp, false, keyedRequest{
		method: "PATCH", body: fields{"add_actions": 3, "add_value_usd": num("0.5")}, other: fields{"add_actions": 4},
		otherPath: "/sessions/" + session(),
		moveOn:    func(d doer) { d.post("/sessions/"+toppedUp+"/end", nil, d.byKey).is(200) },
	})
	return all
}

// onEachKeyedRequest runs the test on each in turn, on each Redis.
func onEachKeyedRequest(t *testing.T, test func(d doer, r keyedRequest)) {
	t.Helper()
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDoer()
		for _, r := range d.keyedRequests() {
			t.Run(r.name, func(t *testing.T) { test(d.through(api.in(t)), r) })
		}
	})
}

// holdings is all that an organization can read of its sessions and transactions.
func (w tenant) holdings() string {
	w.t.Helper()
	var all strings.Builder
	for _, list := range []string{"/v1/sessions", "/v1/transactions"} {
		for _, id := range slices.Concat(w.pages(list+"?limit=200", asKey(w.key))...) {
			fmt.Fprintln(&all, string(w.get(list+"/"+id, asKey(w.key)).is(200).body))
		}
	}
	return all.String()
}

// reordered returns JSON that says the same with white space, and each object's members the other way round.
func reordered(value any) string {
	switch value := value.(type) {
	case fields:
		names := []string{}
		for name := range value {
			names = append(names, name)
		}
		sort.Sort(sort.Reverse(sort.StringSlice(names)))
		for i, name := range names {
			names[i] = string(mustEncode(name)) + " :\t" + reordered(value[name])
		}
		return "{ " + strings.Join(names, " ,\r\n ") + "\n}"
	case []any:
		items := []string{}
		for _, item := range value {
			items = append(items, reordered(item))
		}
		return "[ " + strings.Join(items, " , ") + "]"
	default:
		return string(mustEncode(value))
	}
}

// sendKeyed sends the request with a body and an Idempotency-Key.
func (d doer) sendKeyed(r keyedRequest, body any, key string) *response {
	d.t.Helper()
	return d.ask(r.verb(), r.path, body, both(r.as, keyed(key)))
}

// fresh fails the test if the answer is a replay.
func (r *response) fresh() *response {
	r.t.Helper()
	if got, given := r.header["Idempotent-Replayed"]; given {
		r.t.Errorf("%s: Idempotent-Replayed %q of a request that was not sent before: %s", r.what, got, r.body)
	}
	return r
}

// replays fails the test unless the answer is that of the first request to the letter, and says so.
func (r *response) replays(first *response) {
	r.t.Helper()
	if got := r.header.Values("Idempotent-Replayed"); !slices.Equal(got, []string{"true"}) {
		r.t.Errorf("%s: Idempotent-Replayed %q of a replay", r.what, got)
	}
	if r.status != first.status || string(r.body) != string(first.body) {
		r.t.Errorf("%s: %d %s, and at first %d %s", r.what, r.status, r.body, first.status, first.body)
	}
	for _, name := range []string{"Content-Type", "Location", "Www-Authenticate", "Cache-Control"} {
		if !slices.Equal(r.header[name], first.header[name]) {
			r.t.Errorf("%s: %s %q, and at first %q", r.what, name, r.header[name], first.header[name])
		}
	}
	if r.header.Get("X-Request-Id") == first.header.Get("X-Request-Id") {
		r.t.Errorf("%s: the replay has the first request's X-Request-Id", r.what)
	}
}

func TestARepeatedRequestIsReplayedByteForByte(t *testing.T) {
	onEachKeyedRequest(t, func(d doer, r keyedRequest) {
		there := d.through(d.another(d.t))
		key := strings.ReplaceAll(r.name+r.path, " ", "-")
		first := d.sendKeyed(r, r.body, key).is(r.status).fresh()
		if r.moveOn != nil {
			r.moveOn(d)
		}
		after := d.holdings()

		d.sendKeyed(r, r.body, key).replays(first)
		there.sendKeyed(r, r.body, key).replays(first)
		there.sendKeyed(r, raw(reordered(r.body)), key).replays(first)
		if r.samePath != "" {
			there.ask(r.verb(), r.samePath, r.body, both(r.as, keyed(key))).replays(first)
		}
		if id := idInPath.FindString(r.path); id != "" {
			d.ask(r.verb(), strings.Replace(r.path, id, strings.ToUpper(id), 1), r.body, both(r.as, keyed(key))).replays(first)
		}
		d.ask(r.verb(), r.path, r.body, r.as, keyed(key), header("X-Request-Id", "mine")).replays(first)
		if d.holdings() != after {
			d.t.Errorf("the replays have changed something:\n%s\n%s", after, d.holdings())
		}
	})
}

func TestAnAbsentBodyIsAnEmptyObjectToAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDoer()
		begin := func() string { return d.beginAs(d.byToken, nil).is(201).text("id") }
		for _, r := range []keyedRequest{
			{path: "/v1/transactions/" + begin() + "/commit", as: d.byToken},
			{path: "/v1/transactions/" + begin() + "/rollback", as: d.byKey},
		} {
			first := d.sendKeyed(r, nil, r.path).is(200).fresh()
			d.sendKeyed(r, fields{}, r.path).replays(first)
			d.sendKeyed(r, raw(" { } "), r.path).replays(first)
		}
	})
}

func TestAnotherRequestWithTheSameIdempotencyKeyIsRefused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDoer()
		there := d.through(api.another(t))
		requests := d.keyedRequests()
		for i, r := range requests {
			key := fmt.Sprint("key-", i)
			first := d.sendKeyed(r, r.body, key).is(r.status)
			before := d.holdings()
			for _, at := range []doer{d, there} {
				at.sendKeyed(r, r.other, key).refused(422, "idempotency_key_reused").fresh()
				if r.otherPath != "" {
					at.ask(r.verb(), r.otherPath, r.body, both(r.as, keyed(key))).refused(422, "idempotency_key_reused").fresh()
				}
				for _, other := range requests {
					if other.byToken == r.byToken && other.path != r.path && other.path != r.samePath {
						at.sendKeyed(other, other.body, key).refused(422, "idempotency_key_reused").fresh()
					}
				}
			}
			d.sendKeyed(r, r.body, key).replays(first)
			if d.holdings() != before {
				t.Errorf("%s: a refused request has changed something", r.name)
			}
		}
	})
}

func TestIdempotencyKeysBelongToTheirCaller(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d, stranger := api.newDoer(), api.newDoer()
		colleague := d
		colleague.agent = d.newAgent()
		session, theirs, strangers := d.newSession(nil), colleague.newSession(nil), stranger.newSession(nil)
		charge := fields{"value_usd": 1}
		for _, by := range []struct {
			as      option
			session string
		}{
			{d.byKey, session}, {d.byToken, session}, {asAgent(colleague.exchange().access), theirs},
			{stranger.byKey, strangers}, {stranger.byToken, strangers},
		} {
			first := d.post("/sessions/"+by.session+"/actions", charge, both(by.as, keyed("k"))).is(200).fresh()
			d.post("/sessions/"+by.session+"/actions", charge, both(by.as, keyed("k"))).replays(first)
		}
		// An agent's keys outlast its tokens.
		d.post("/sessions/"+session+"/actions", fields{}, both(asAgent(d.exchange().access), keyed("k"))).
			refused(422, "idempotency_key_reused")
		for id, want := range map[string]int{session: 2, theirs: 1} {
			if got := d.session(id)["action_count"]; got != num(want) {
				t.Errorf("%v actions, want %d", got, want)
			}
		}
	})
}

func TestAMalformedIdempotencyKeyIsRefusedByItsName(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDoer()
		for i, r := range d.keyedRequests() {
			before := d.holdings()
			for _, key := range []string{"", long(256), "a b", "a\tb", "é", "a\u0080", "\xff", long(5000)} {
				d.sendKeyed(r, r.body, key).invalid("Idempotency-Key")
			}
			for _, twice := range [][]string{{"a", "b"}, {"a", "a"}, {"", ""}, {"", "a"}} {
				d.ask(r.verb(), r.path, r.body, r.as, func(h http.Header) { h["Idempotency-Key"] = twice }).invalid("Idempotency-Key")
			}
			if d.holdings() != before {
				t.Errorf("%s: a refused request has changed something", r.name)
			}
			// Nor was any of these kept.
			d.sendKeyed(r, r.body, fmt.Sprint(i, "a")).is(r.status).fresh()
		}
		session := d.newSession(nil)
		for _, control := range []string{"\x01", "\x1f", "\x7f"} {
			answers := d.exchangeRaw("POST /sessions/" + session + "/actions HTTP/1.1\r\nHost: x\r\nX-API-Key: " + d.key +
				"\r\nContent-Length: 0\r\nIdempotency-Key: a" + control + "b\r\n\r\n")
			if len(answers) != 1 {
				t.Fatalf("%d answers, want 1", len(answers))
			}
			answers[0].refused(400, "invalid_request")
		}
		if got := d.session(session)["action_count"]; got != num(0) {
			t.Errorf("%v actions, want 0", got)
		}
	})
}

func TestAnIdempotencyKeyHas1To255VisibleCharacters(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	d := api.newDoer()
	session := d.newSession(nil)
	visible := ""
	for c := byte(0x21); c <= 0x7e; c++ {
		visible += string(c)
	}
	seen := 0
	for _, key := range []string{"a", "A", long(255), long(254), visible, ":", "k,k", `"k"`} {
		first := d.post("/sessions/"+session+"/actions", fields{}, both(d.byKey, keyed(key))).is(200).fresh()
		if seen++; first.object()["action_count"] != num(seen) {
			t.Errorf("%q: %v actions, want %d", key, first.object()["action_count"], seen)
		}
		d.post("/sessions/"+session+"/actions", fields{}, both(d.byKey, keyed(key))).replays(first)
	}
}

// A refusal is an outcome: a replay returns it even if the request would succeed by then.
func TestRefusalsOfTheStoreAreReplayed(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDoer()
		full, ended := d.newSession(fields{"max_actions": 1, "scopes": list("read")}), d.newSession(nil)
		d.post("/sessions/"+full+"/actions", fields{}, d.byKey).is(200)
		d.post("/sessions/"+ended+"/end", nil, d.byKey).is(200)
		irreversible := d.beginAs(d.byToken, fields{"reversible": false}).is(201).text("id")
		d.post("/v1/transactions/"+irreversible+"/commit", nil, d.byToken).is(200)
		revoked := d
		revoked.agent = d.newAgent()
		revoked.revoke()
		charge := func(id string) string { return "/sessions/" + id + "/actions" }
		begin := fields{"action_type": "call", "pre_state": fields{}}
		settle := func(what string) string { return "/v1/transactions/" + irreversible + what }
		for i, test := range []struct {
			path   string
			body   fields
			as     []option
			status int
			code   string
		}{
			{charge(full), fields{"count": 2}, []option{d.byKey, d.byToken}, 403, "session_limit_reached"},
			{charge(full), fields{"value_usd": 200}, []option{d.byKey, d.byToken}, 403, "session_limit_reached"},
			{charge(ended), fields{}, []option{d.byKey, d.byToken}, 403, "session_not_active"},
			{"/v1/transactions", begin.with(fields{"session_id": full}), []option{d.byToken}, 403, "session_limit_reached"},
			{"/v1/transactions", begin.with(fields{"session_id": ended}), []option{d.byToken}, 403, "session_not_active"},
			{settle("/commit"), fields{"value_usd": 1}, []option{d.byToken}, 409, "transaction_not_pending"},
			{settle("/rollback"), fields{"reason": "r"}, []option{d.byKey, d.byToken}, 409, "transaction_not_reversible"},
			{"/sessions", fields{"agent_id": revoked.agent.id}, []option{d.byKey}, 409, "agent_revoked"},
			{"/v1/actions", batchOf(fields{"session_id": full}, fields{"session_id": uuid.NewString()}, "x"),
				[]option{d.byKey, d.byToken}, 200, ""},
		} {
			var firsts []*response
			send := func(n int, as option) *response {
				body := any(test.body)
				if test.body == nil {
					body = nil
				}
				return d.post(test.path, body, both(as, keyed(fmt.Sprint("key-", i, "-", n))))
			}
			for n, as := range test.as {
				first := send(n, as).is(test.status).fresh()
				if test.code != "" {
					first.refused(test.status, test.code)
				}
				firsts = append(firsts, first)
			}
			d.patch("/sessions/"+full, fields{"max_actions": 100, "max_value_usd": 1000}, d.byKey).is(200)
			before := d.holdings()
			for n, as := range test.as {
				send(n, as).replays(firsts[n])
				d.post(charge(full), fields{"count": 7}, both(as, keyed(fmt.Sprint("key-", i, "-", n)))).
					refused(422, "idempotency_key_reused").fresh()
			}
			if d.holdings() != before {
				t.Errorf("%s: the replay has changed something", test.path)
			}
			d.patch("/sessions/"+full, fields{"max_actions": 1, "max_value_usd": 1}, d.byKey).is(200)
		}
	})
}

// A mistyped request leaves its key to the corrected one.
func TestARefusalOfAnUnknownObjectIsNotStored(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d, foreign := api.newDoer(), api.newTenant()
		session, pending := d.newSession(nil), d.beginAs(d.byToken, nil).is(201).text("id")
		for i, test := range []struct {
			wrong, right string
			wrongBody    fields
			rightBody    fields
			as           option
			code         string
		}{
			{"/sessions", "/sessions", fields{"agent_id": uuid.NewString()}, fields{"agent_id": d.agent.id}, d.byKey, "not_found"},
			{"/sessions", "/sessions", fields{"agent_id": foreign.agent.id}, fields{"agent_id": d.agent.id}, d.byKey, "not_found"},
			{"/sessions", "/sessions", fields{"agent_id": d.agent.id, "scopes": list("admin")}, fields{"agent_id": d.agent.id}, d.byKey, "invalid_request"},
			{"/sessions/" + uuid.NewString() + "/actions", "/sessions/" + session + "/actions", fields{}, fields{}, d.byKey, "not_found"},
			{"/sessions/" + uuid.NewString() + "/actions", "/sessions/" + session + "/actions", fields{}, fields{}, d.byToken, "not_found"},
			{"/sessions/" + session + "/actions", "/sessions/" + session + "/actions", fields{"scope": "admin"}, fields{"scope": "read"}, d.byKey, "insufficient_scope"},
			{"/v1/transactions", "/v1/transactions", fields{"action_type": "a", "pre_state": fields{}, "session_id": uuid.NewString()},
				fields{"action_type": "a", "pre_state": fields{}, "session_id": session}, d.byToken, "not_found"},
			{"/v1/transactions/" + uuid.NewString() + "/rollback", "/v1/transactions/" + pending + "/rollback", fields{}, fields{}, d.byKey, "not_found"},
			{"/v1/agents/" + uuid.NewString() + "/secret/rotate", "/v1/agents/" + d.agent.id + "/secret/rotate", fields{}, fields{}, d.byKey, "not_found"},
		} {
			key := keyed(fmt.Sprint("key-", i))
			first := d.post(test.wrong, test.wrongBody, both(test.as, key)).fresh()
			if got := first.text("code"); got != test.code {
				t.Errorf("%s: %d %s, want %s", test.wrong, first.status, got, test.code)
			}
			corrected := d.post(test.right, test.rightBody, both(test.as, key)).fresh()
			if corrected.status > 201 {
				t.Errorf("%s: %d %s", test.right, corrected.status, corrected.body)
			}
			d.post(test.right, test.rightBody, both(test.as, key)).replays(corrected)
		}
	})
}

// A token's scopes decide which items of a batch are charged. With others it is another request, though it says the same.
func TestABatchByATokenWithOtherScopesIsAnotherRequest(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		whole, narrow := w.grant("read", "write").is(200).text("access_token"), w.grant("read").is(200).text("access_token")
		for _, test := range []struct {
			first, other string
			status       int // of the item that asks for the scope, at first
			charged      fields
		}{
			{whole, narrow, 200, fields{"action_count": 8, "value_used_usd": 51}},
			{narrow, whole, 403, fields{"action_count": 1, "value_used_usd": 1}},
		} {
			id := w.newSession(fields{"max_actions": 100, "max_value_usd": 100})
			before := w.session(id)
			send := func(access string) *response {
				return w.post("/v1/actions", batchOf(fields{"session_id": id, "count": 7, "value_usd": 50, "scope": "write"},
					fields{"session_id": id, "value_usd": 1}), both(asAgent(access), keyed("key"+id)))
			}
			first := send(test.first).is(200).fresh()
			items := first.items(2)
			if items[0].status != test.status || items[1].status != 200 {
				t.Errorf("the items are %v", items)
			}
			for range 2 {
				send(test.other).refused(422, "idempotency_key_reused").fresh()
				send(test.first).replays(first)
				w.wantUsage(before, test.charged)
			}
		}
	})
}

// The nil UUID is no session's id, and shares nothing with the batch as a whole.
func TestABatchOnTheNilUUIDIsReplayed(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDoer()
		for _, as := range []option{d.byToken, d.byKey} {
			id := d.newSession(nil)
			for n, items := range [][]any{{fields{"session_id": uuid.Nil}}, {fields{"session_id": id}, fields{"session_id": uuid.Nil}}} {
				send := func() *response {
					return d.post("/v1/actions", batchOf(items...), both(as, keyed(fmt.Sprint("nil-", n))))
				}
				first := send().is(200).fresh()
				wantItem(t, first, first.items(len(items))[n], 404, "not_found")
				send().replays(first)
			}
			if got := d.session(id)["action_count"]; got != num(1) {
				t.Errorf("%v actions, want 1", got)
			}
		}
	})
}

// A replay shows the session's own fields, not another instance's defaults.
func TestASessionIsReplayedUnderOtherDefaults(t *testing.T) {
	t.Parallel()
	given := budgets.SessionDefaults{MaxActions: 7, MaxValue: 8 * money.USD, Lifetime: time.Hour}
	onEachRedisWith(t, setup{defaults: given}, func(t *testing.T, api *client) {
		d, changed := api.newDoer(), api.on.setup
		changed.defaults = budgets.SessionDefaults{MaxActions: 70, MaxValue: 80 * money.USD, Lifetime: 2 * time.Hour}
		there := d.through(run(t, &instance{setup: changed, keyring: api.on.keyring}))
		first := d.post("/sessions", fields{"agent_id": d.agent.id}, both(d.byKey, keyed("k"))).is(201).fresh()
		if s := first.object(); s["max_actions"] != num(7) || s["max_value_usd"] != num(8) {
			t.Errorf("the session is %v", s)
		}
		there.post("/sessions", fields{"agent_id": d.agent.id}, both(d.byKey, keyed("k"))).replays(first)
	})
}

// A refusal before the store is called is no outcome: the corrected request may use the same key.
func TestMalformedRequestsLeaveTheIdempotencyKeyUnused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDoer()
		for i, r := range d.keyedRequests() {
			key := fmt.Sprint("key-", i)
			d.sendKeyed(r, raw(`{"x":`), key).refused(400, "invalid_request").fresh()
			d.sendKeyed(r, fields{"nothing": 1}, key).refused(400, "invalid_request").fresh()
			d.ask(r.verb(), r.path, raw("{}"), r.as, keyed(key), header("Content-Type", "text/plain")).refused(415, "unsupported_media_type").fresh()
			d.sendKeyed(r, r.body, key).is(r.status).fresh()
		}
	})
}

func TestA401IsNotRemembered(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDoer()
		for i, r := range d.keyedRequests() {
			key := fmt.Sprint("key-", i)
			wrong, code := asKey(newKeyOf(uuid.MustParse(d.org))), "invalid_api_key"
			live := r.as
			if r.byToken {
				dead := d.exchange()
				d.post("/v1/auth/revoke", fields{"refresh_token": dead.refresh}, asAgent(dead.access)).is(200)
				wrong, code = asAgent(dead.access), "invalid_token"
				live = asAgent(d.exchange().access)
			}
			send := func(as option) *response { return d.ask(r.verb(), r.path, r.body, both(as, keyed(key))) }
			before := d.holdings()
			send(wrong).refused(401, code).fresh()
			if d.holdings() != before {
				t.Errorf("%s: a refused request has changed something", r.name)
			}
			first := send(live).is(r.status).fresh()
			send(wrong).refused(401, code).fresh()
			send(r.as).replays(first)
		}
	})
}

func Test5xxIsNotRemembered(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	api := start(t, setup{redis: "redis://" + mini.Addr(), mini: mini})
	d := api.newDoer()
	for i, r := range d.keyedRequests() {
		key, before := fmt.Sprint("key-", i), d.holdings()
		mini.SetError("LOADING Redis is loading the dataset in memory")
		d.sendKeyed(r, r.body, key).refused(503, "unavailable").fresh()
		mini.SetError("")
		lost(mini, true)
		if got := d.sendKeyed(r, r.body, key).fresh(); got.status != 503 {
			t.Errorf("%s: %d %s of a Redis that is lost", r.name, got.status, got.body)
		}
		lost(mini, false)
		if d.holdings() != before {
			t.Errorf("%s: what was unavailable has changed something", r.name)
		}
		first := d.sendKeyed(r, r.body, key).is(r.status).fresh()
		d.sendKeyed(r, r.body, key).replays(first)
	}
}

func TestTheIdempotencyKeyIsIgnoredElsewhere(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDoer()
		for _, key := range []string{"k", "k", "", long(300), "a b"} {
			d.post("/v1/agents/"+d.newAgent().id+"/revoke", nil, both(d.byKey, keyed(key))).is(200).fresh()
			d.post("/v1/auth/token", fields{"agent_id": d.agent.id, "secret": d.secret}, keyed(key)).is(200).fresh()
			d.get("/sessions", both(d.byKey, keyed(key))).is(200).fresh()
			d.post("/sessions/"+d.newSession(nil)+"/end", nil, both(d.byKey, keyed(key))).is(200).fresh()
		}
		if got := len(d.get("/v1/agents", d.byKey).is(200).ids()); got != 2+5 {
			t.Errorf("%d agents, want 7", got)
		}
	})
}

// An operation that reads the header names it when it refuses a key that is too long.
func TestTheDescriptionSaysWhichOperationsTakeAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	for _, o := range server.Operations() {
		if o.ForProxies || !o.ByKey && !o.ByToken && o.Body == nil { // a proxy's key may be in the query; the others take no request
			continue
		}
		d := api.newDoer()
		as := credentialOf(o, d.byKey, d.byToken)
		for _, e := range d.endpoints(d.newSession(nil), d.begin(nil), func(one server.Operation) bool { return one.ID == o.ID }) {
			refused := must(d.try(e.method, e.path, e.body, as, keyed(long(300))))(t)
			if reads := strings.Contains(string(refused.body), `"field":"Idempotency-Key"`); reads != o.Idempotent {
				t.Errorf("%s: openapi.json has the parameter IdempotencyKey: %v; the service reads it: %v", o.ID, o.Idempotent, reads)
			}
		}
	}
}

// The first request acts, and all requests get its outcome.
func TestOfManyEqualRequestsOneActs(t *testing.T) {
	api := onOneRedis(t)
	d := api.newDoer()
	there := d.through(api.another(t))
	for i, r := range d.keyedRequests() {
		t.Run(r.name, func(t *testing.T) {
			d, before := d.through(d.client.in(t)), d.holdings()
			var answers [64]*response
			var wait sync.WaitGroup
			for racer := range answers {
				wait.Go(func() {
					var err error
					answers[racer], err = []doer{d, there}[racer%2].try(r.verb(), r.path, r.body, r.as, keyed(fmt.Sprint("key-", i)))
					if err != nil {
						t.Error(err)
					}
				})
			}
			wait.Wait()
			var acted []*response // of equal batches each may do a part
			for _, answered := range answers {
				if answered == nil {
					return
				}
				answered.t = t
				if _, replayed := answered.header["Idempotent-Replayed"]; !replayed {
					acted = append(acted, answered.is(r.status))
				}
			}
			if len(acted) == 0 || len(acted) > 1 && r.path != "/v1/actions" {
				t.Fatalf("%d of the requests acted, want 1", len(acted))
			}
			first := acted[0]
			for _, answered := range answers {
				if !slices.Contains(acted, answered) {
					answered.replays(first)
				} else if string(answered.body) != string(first.body) {
					t.Errorf("two requests acted and were answered %s and %s", first.body, answered.body)
				}
			}
			after := d.holdings()
			if after == before {
				t.Error("nothing has changed: the test proves nothing")
			}
			d.sendKeyed(r, r.body, fmt.Sprint("key-", i)).replays(first)
			if d.holdings() != after {
				t.Error("a replay has changed something")
			}
			wantOneEffect(t, r, before, after)
		})
	}
}

// wantOneEffect compares what an organization holds before and after: an action, hold, settlement or object more.
func wantOneEffect(t *testing.T, r keyedRequest, before, after string) {
	t.Helper()
	created := strings.Count(after, "\n") - strings.Count(before, "\n")
	if want := map[bool]int{true: 1}[r.status == 201]; created != want {
		t.Errorf("%d objects were made, want %d", created, want)
	}
	var changed []string
	for line := range strings.Lines(after) {
		if !strings.Contains(before, line) {
			changed = append(changed, line)
		}
	}
	effects := map[string][]string{
		"charge": {`"action_count":2,`}, "batch": {`"action_count":4,`, `"action_count":2,`}, "create": {`"action_count":0,`},
		"begin": {`"action_count":1,`, `"sequence_number":1,`}, "commit": {`"value_used_usd":3,`, `"status":"committed"`},
		"rollback": {`"value_held_usd":0,`, `"status":"rolled_back"`}, "change": {`"value_held_usd":3,`, `"value_usd":3,`},
		"top": {`"max_actions":103,`},
	}
	kind, _, _ := strings.Cut(r.name, " ")
	if len(changed) != len(effects[kind]) {
		t.Errorf("%d objects have changed: %s", len(changed), changed)
	}
	for _, effect := range effects[kind] {
		if !strings.Contains(strings.Join(changed, ""), effect) {
			t.Errorf("what has changed lacks %s: %s", effect, changed)
		}
	}
}

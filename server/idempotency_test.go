package server_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

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

// otherBodies are, for each operation that takes an Idempotency-Key, members that make another request of its example.
var otherBodies = map[string]fields{
	"createOrganization": {"name": "other"}, "rotateApiKey": {"grace_seconds": 1}, "createApiKey": {"role": "admin"},
	"rotateApiKeyById": {"grace_seconds": 1}, "createAgent": {"scopes": list("read")}, "rotateAgentSecret": {"revoke_families": false},
	"createSession": {"max_actions": 3}, "changeLimits": {"max_actions": 11}, "charge": {"count": 2}, "grantLease": {"max_actions": 1},
	"requestMore": {"reason": "other"}, "createTrustedIssuer": {"description": "other"}, "createWebhook": {"description": "other"},
	"rotateWebhookSecret": {"grace_seconds": 1}, "testWebhook": nil, "chargeBatch": {"actions": []any{fields{"session_id": uuid.NewString()}}},
	"settleLease": {"action_count": 1}, "beginTransaction": {"value_usd": 1}, "changeHold": {"value_usd": 4},
	"commitTransaction": {"value_usd": 2}, "rollbackTransaction": {"reason": "other"},
}

// keyedOperation is an operation that takes an Idempotency-Key, for one of its callers.
type keyedOperation struct {
	server.Operation
	by    string
	as    option
	paths []string // on the caller's object
	body  fields
}

// keyedOperations returns every operation that takes an Idempotency-Key, once for each kind of caller.
func (d doer) keyedOperations() (all []keyedOperation) {
	d.t.Helper()
	for _, o := range server.Operations() {
		if !o.Idempotent {
			continue
		}
		session := d.objects["SessionId"]
		keyed := keyedOperation{o, "", anonymous, pathsOf(o, func(_, object string) string { return d.idOf(object, session, session) }), d.bodyOf(o, session)}
		if _, known := otherBodies[o.ID]; !known {
			d.t.Errorf("no row of otherBodies makes another request of %s", o.ID)
		}
		if o.ByKey {
			keyed.by, keyed.as = " by key", d.byKey
			all = append(all, keyed)
		}
		if o.ByToken && o.ID != createSession { // which an agent creates below a session alone
			keyed.by, keyed.as = " by token", d.byToken
			all = append(all, keyed)
		}
		if !o.ByKey && !o.ByToken {
			all = append(all, keyed)
		}
	}
	return all
}

// onEachKeyedOperation runs the test on each, with a caller and objects of its own.
func onEachKeyedOperation(t *testing.T, test func(d doer, o keyedOperation)) {
	t.Helper()
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		for i, o := range api.newDoer().keyedOperations() {
			t.Run(o.ID+o.by, func(t *testing.T) {
				d := api.in(t).newDoer()
				d.objects = d.oneOfEach()
				test(d, d.keyedOperations()[i])
			})
		}
	})
}

// keyedRequest is a request whose effect is known, on objects of its own.
type keyedRequest struct {
	name, path string
	as         option
	method     string // "" for POST
	body       fields
	status     int
}

func (r keyedRequest) verb() string { return cmp.Or(r.method, "POST") }

// keyedRequests returns a request to each route of sessions and transactions for each of its callers.
func (d doer) keyedRequests() []keyedRequest {
	d.t.Helper()
	session := func() string { return d.newSession(fields{"max_actions": 100, "max_value_usd": 50}) }
	begun := func() string {
		return "/v1/transactions/" + d.beginAs(d.byToken, fields{"session_id": session(), "value_usd": 2}).is(201).text("id")
	}
	metadata := fields{"b": 1, "a": fields{"d": list("x", "y"), "c": "é"}}
	var all []keyedRequest
	for _, prefix := range withAndWithoutV1 {
		body := fields{"agent_id": d.agent.id, "max_actions": 5, "metadata": metadata}
		all = append(all, keyedRequest{"create session", prefix + "/sessions", d.byKey, "", body, 201})
	}
	for name, as := range map[string]option{"by key": d.byKey, "by token": d.byToken} {
		id, second := session(), session()
		batch := batchOf(fields{"session_id": id, "value_usd": 1}, fields{"session_id": second, "count": 2}, fields{"session_id": id, "count": 3},
			fields{"session_id": uuid.NewString()}, "x", fields{"session_id": id, "count": 1000})
		charge := fields{"value_usd": num("0.5"), "count": 2, "scope": "read"}
		all = append(all, keyedRequest{"charge " + name, "/sessions/" + session() + "/actions", as, "", charge, 200},
			keyedRequest{"batch " + name, "/v1/actions", as, "", batch, 200},
			keyedRequest{"rollback " + name, begun() + "/rollback", as, "", fields{"reason": "r"}, 200})
	}
	begin := fields{
		"action_type": "call", "pre_state": fields{"b": 1, "a": fields{"d": 1, "c": list("y", "x")}}, "session_id": session(),
		"value_usd": 1, "metadata": fields{"z": 1, "y": 2},
	}
	commit := fields{"value_usd": 3, "post_state": fields{"b": 1, "a": 2}}
	return append(all, keyedRequest{"begin", "/v1/transactions", d.byToken, "", begin, 201},
		keyedRequest{"commit", begun() + "/commit", d.byToken, "", commit, 200},
		keyedRequest{"change hold", begun(), d.byToken, "PATCH", fields{"value_usd": 3, "expires_in_seconds": 600}, 200},
		keyedRequest{"top up", "/sessions/" + session(), d.byKey, "PATCH", fields{"add_actions": 3, "add_value_usd": num("0.5")}, 200})
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
	case object:
		return reordered(fields(value))
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

func TestAnIdempotencyKeyReplaysItsRequestByteForByteAndRefusesAnother(t *testing.T) {
	onEachKeyedOperation(t, func(d doer, o keyedOperation) {
		there, key, elsewhere := d.through(d.another(d.t)), keyed(uuid.NewString()), d.newSession(nil)
		first := d.ask(o.Method, o.paths[0], o.body, both(o.as, key)).fresh()
		if first.status/100 != 2 {
			d.t.Fatalf("%s: %d %s", first.what, first.status, first.body)
		}
		after := d.holdings()

		there.ask(o.Method, o.paths[0], o.body, both(o.as, key)).replays(first)
		d.ask(o.Method, o.paths[0], raw(reordered(o.body)), both(o.as, key), header("Content-Type", "application/json")).replays(first)
		d.ask(o.Method, o.paths[0], o.body, o.as, key, header("X-Request-Id", "mine")).replays(first)
		for _, path := range o.paths {
			d.ask(o.Method, path, o.body, both(o.as, key)).replays(first)
			if id := idInPath.FindString(path); id != "" {
				d.ask(o.Method, strings.Replace(path, id, strings.ToUpper(id), 1), o.body, both(o.as, key)).replays(first)
			}
		}

		refused := func(method, path string, body fields) {
			d.t.Helper()
			there.ask(method, path, body, both(o.as, key)).refused(422, "idempotency_key_reused").fresh()
		}
		if other := otherBodies[o.ID]; other != nil {
			refused(o.Method, o.paths[0], o.body.with(other))
		}
		if o.ByKey || o.ByToken { // another operation, and on another object
			refused("POST", "/v1/sessions/"+elsewhere+"/actions", fields{})
		}
		d.ask(o.Method, o.paths[0], o.body, both(o.as, key)).replays(first)
		if now := d.holdings(); now != after {
			d.t.Errorf("the replays have changed something:\n%s\n%s", after, now)
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

// A refusal before the store is called is no outcome: the corrected request may use the same key.
func TestAMalformedRequestLeavesItsIdempotencyKeyUnused(t *testing.T) {
	onEachKeyedOperation(t, func(d doer, o keyedOperation) {
		before := d.holdings()
		ask := func(body any, options ...option) *response {
			return d.ask(o.Method, o.paths[0], body, append(options, o.as)...)
		}
		for _, key := range []string{"", long(256), "a b", "a\tb", "é", "a\u0080", "\xff", long(5000)} {
			ask(o.body, keyed(key)).invalid("Idempotency-Key")
		}
		for _, twice := range [][]string{{"a", "b"}, {"a", "a"}, {"", ""}, {"", "a"}} {
			ask(o.body, func(h http.Header) { h["Idempotency-Key"] = twice }).invalid("Idempotency-Key")
		}
		key := keyed(uuid.NewString())
		ask(raw(`{"x":`), key).refused(400, "invalid_request").fresh()
		ask(fields{"nothing": 1}, key).refused(400, "invalid_request").fresh()
		ask(raw("{}"), key, header("Content-Type", "text/plain")).refused(415, "unsupported_media_type").fresh()
		if after := d.holdings(); after != before {
			d.t.Errorf("a refused request has changed something:\n%s\n%s", before, after)
		}
		if done := ask(o.body, key).fresh(); done.status/100 != 2 {
			d.t.Errorf("%s: %d %s", done.what, done.status, done.body)
		}
	})
}

func TestAControlCharacterInAnIdempotencyKeyIsRefused(t *testing.T) {
	t.Parallel()
	d := onMiniredis(t, setup{}).newDoer()
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

// A refusal is an outcome: a replay returns it even if the request would succeed by then. Which refusals are, redisstore shows.
func TestARefusalOfTheStoreIsReplayed(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDoer()
		full := d.newSession(fields{"max_actions": 1})
		d.post("/sessions/"+full+"/actions", fields{}, d.byKey).is(200)
		tooMuch := fields{"session_id": full, "action_type": "call"}
		for name, test := range map[string]struct {
			path   string
			body   fields
			as     option
			status int
		}{
			"a charge by key":   {"/sessions/" + full + "/actions", fields{}, d.byKey, 403},
			"a charge by token": {"/sessions/" + full + "/actions", fields{}, d.byToken, 403},
			"a begin":           {"/v1/transactions", tooMuch, d.byToken, 403},
			"a batch":           {"/v1/actions", batchOf(tooMuch.without("action_type"), fields{"session_id": uuid.NewString()}, "x"), d.byKey, 200},
		} {
			t.Run(name, func(t *testing.T) {
				d, key := d.through(d.client.in(t)), keyed(uuid.NewString())
				first := d.post(test.path, test.body, both(test.as, key)).is(test.status).fresh()
				d.patch("/sessions/"+full, fields{"max_actions": 100}, d.byKey).is(200)
				before := d.holdings()
				d.post(test.path, test.body, both(test.as, key)).replays(first)
				if d.holdings() != before {
					t.Error("the replay has changed something")
				}
				d.patch("/sessions/"+full, fields{"max_actions": 1}, d.byKey).is(200)
			})
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

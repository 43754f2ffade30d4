package server_test

import (
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
	"settleLease": {"action_count": 1}, "createSessionKey": {"name": "other"}, "beginTransaction": {"value_usd": 1}, "changeHold": {"value_usd": 4},
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
		wantEqual(d.t, "what there is after the replays", d.holdings(), after)
	})
}

func TestAnAbsentBodyIsAnEmptyObjectToAnIdempotencyKey(t *testing.T) {
	onEach(t, (*client).newDoer, func(t *testing.T, d doer) {
		for how, as := range map[string]option{"/commit": d.byToken, "/rollback": d.byKey} {
			path := "/v1/transactions/" + d.beginAs(d.byToken, nil).is(201).text("id") + how
			first := d.post(path, nil, as, keyed(how)).is(200).fresh()
			d.post(path, fields{}, as, keyed(how)).replays(first)
			d.post(path, raw(" { } "), as, keyed(how)).replays(first)
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
		wantEqual(d.t, "what there is after refused requests", d.holdings(), before)
		if done := ask(o.body, key).fresh(); done.status/100 != 2 {
			d.t.Errorf("%s: %d %s", done.what, done.status, done.body)
		}
	})
}

func TestAnIdempotencyKeyHas1To255VisibleCharacters(t *testing.T) {
	t.Parallel()
	d := onMiniredis(t, setup{}).newDoer()
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
	onEach(t, (*client).newDoer, func(t *testing.T, d doer) {
		full := d.newSession(fields{"max_actions": 1})
		d.post("/sessions/"+full+"/actions", fields{}, d.byKey).is(200)
		batch := batchOf(fields{"session_id": full}, fields{"session_id": uuid.NewString()}, "x")
		send := map[string]func() *response{
			"charge": func() *response { return d.post("/sessions/"+full+"/actions", fields{}, d.byKey, keyed("a")) },
			"begin": func() *response {
				return d.post("/v1/transactions", fields{"session_id": full, "action_type": "call"}, d.byToken, keyed("b"))
			},
			"batch": func() *response { return d.post("/v1/actions", batch, d.byKey, keyed("c")) },
		}
		first := map[string]*response{}
		for what, ask := range send {
			first[what] = ask().fresh()
		}
		first["charge"].refused(403, "session_limit_reached")
		first["begin"].refused(403, "session_limit_reached")
		wantItem(t, first["batch"], first["batch"].items(3)[0], 403, "session_limit_reached")
		d.patch("/sessions/"+full, fields{"max_actions": 100}, d.byKey).is(200)
		before := d.holdings()
		for what, ask := range send {
			ask().replays(first[what])
		}
		if d.holdings() != before {
			t.Error("a replay has changed something")
		}
	})
}

// A token's scopes decide which items of a batch are charged. With others it is another request, though it says the same.
func TestABatchByATokenWithOtherScopesIsAnotherRequest(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		whole, narrow := w.grant("read", "write").is(200).text("access_token"), w.grant("read").is(200).text("access_token")
		for _, test := range []struct {
			first, other string
			charged      fields
		}{
			{whole, narrow, fields{"action_count": 8, "value_used_usd": 51}}, {narrow, whole, fields{"action_count": 1, "value_used_usd": 1}},
		} {
			id := w.newSession(fields{"max_actions": 100, "max_value_usd": 100})
			before := w.session(id)
			send := func(access string) *response {
				return w.post("/v1/actions", batchOf(fields{"session_id": id, "count": 7, "value_usd": 50, "scope": "write"},
					fields{"session_id": id, "value_usd": 1}), asAgent(access), keyed("key"+id))
			}
			first := send(test.first).is(200).fresh()
			send(test.other).refused(422, "idempotency_key_reused").fresh()
			send(test.first).replays(first)
			w.wantUsage(before, test.charged)
		}
	})
}

// The nil UUID is no session's id, and shares nothing with the batch as a whole.
func TestABatchOnTheNilUUIDIsReplayed(t *testing.T) {
	onEach(t, (*client).newDoer, func(t *testing.T, d doer) {
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
			wantEqual[any](t, "actions", d.session(id)["action_count"], num(1))
		}
	})
}

// A replay shows the session's own fields, not another instance's defaults.
func TestASessionIsReplayedUnderOtherDefaults(t *testing.T) {
	t.Parallel()
	given := budgets.SessionDefaults{MaxActions: 7, MaxValue: 8 * money.USD, Lifetime: time.Minute}
	onEachRedisWith(t, setup{defaults: given}, func(t *testing.T, api *client) {
		d, changed := api.newDoer(), api.on.setup
		changed.defaults = budgets.SessionDefaults{MaxActions: 70, MaxValue: 80 * money.USD, Lifetime: 2 * time.Hour}
		there := d.through(run(t, &instance{setup: changed, keyring: api.on.keyring}))
		first := d.post("/sessions", fields{"agent_id": d.agent.id}, both(d.byKey, keyed("k"))).is(201).fresh()
		first.exactly(newSessionFields(d.tenant).with(fields{"max_actions": 7, "max_value_usd": 8, "expires_at": aboutIn(time.Minute),
			"scopes": list("read", "write", "transactions:rollback")}))
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
			wantEqual(t, o.ID+": whether the service reads Idempotency-Key", strings.Contains(string(refused.body), `"field":"Idempotency-Key"`), o.Idempotent)
		}
	}
}

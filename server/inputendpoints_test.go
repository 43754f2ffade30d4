package server_test

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"remit/server"
)

// kind is what a field of a request holds.
type kind int

const (
	aText kind = iota
	aUUID
	anInteger
	anAmount
	scopeList
	anObject
	knownFields // an object with fields of its own
	aBoolean
	itemList
)

// bodyEndpoint is an endpoint that reads a body, with one that it would accept.
type bodyEndpoint struct {
	method, path string
	as           option
	valid        fields
	required     []string
	kinds        map[string]kind // of all its fields
}

// bodyEndpoints returns all endpoints that read a body: of some what it is made of, of the others the example of openapi.json.
func bodyEndpoints(w tenant) []bodyEndpoint {
	known := knownBodyEndpoints(w)
	session, key, access := w.newSession(nil), asKey(w.key), asAgent(w.exchange().access)
	all := known
	for _, o := range server.Operations() {
		for _, e := range w.endpoints(session, session, func(one server.Operation) bool { return one.ID == o.ID && one.Body != nil }) {
			listed := func(k bodyEndpoint) bool { return k.method == e.method && o.Has(k.path) && len(k.path) == len(e.path) }
			if !slices.ContainsFunc(known, listed) {
				all = append(all, bodyEndpoint{method: e.method, path: e.path, as: credentialOf(o, key, access), valid: w.bodyOf(o, session)})
			}
		}
	}
	return all
}

// knownBodyEndpoints returns endpoints that read a body, with the kinds of its fields.
func knownBodyEndpoints(w tenant) []bodyEndpoint {
	key := asKey(w.key)
	session, transaction, tokens := w.newSession(nil), w.begin(nil), w.exchange()
	newSession := bodyEndpoint{
		"POST", "/sessions", key, fields{"agent_id": w.agent.id}, []string{"agent_id"}, map[string]kind{
			"agent_id": aUUID, "max_actions": anInteger, "max_value_usd": anAmount, "expires_in_seconds": anInteger,
			"max_committed_usd": anAmount, "max_lease_seconds": anInteger, "scopes": scopeList, "metadata": anObject,
		},
	}
	charge := bodyEndpoint{"POST", "/sessions/" + session + "/actions", key, fields{}, nil, map[string]kind{
		"action_type": aText, "value_usd": anAmount, "count": anInteger, "scope": aText,
	}}
	change := bodyEndpoint{"PATCH", "/sessions/" + session, key, fields{"max_actions": 5}, nil, map[string]kind{
		"max_actions": anInteger, "max_value_usd": anAmount, "expires_in_seconds": anInteger,
		"add_actions": anInteger, "add_value_usd": anAmount, "max_lease_seconds": anInteger,
	}}
	begin := bodyEndpoint{
		"POST", "/v1/transactions", asAgent(tokens.access), fields{"action_type": "call"},
		[]string{"action_type"}, map[string]kind{
			"action_type": aText, "pre_state": anObject, "session_id": aUUID, "value_usd": anAmount,
			"expires_in_seconds": anInteger, "reversible": aBoolean, "on_expiry": aText, "metadata": anObject,
		},
	}
	leasing := w.leasing(nil)
	wanted := fields{"max_actions": 1, "expires_in_seconds": 1}
	grant := bodyEndpoint{"POST", "/sessions/" + leasing + "/leases", key, wanted, []string{"max_actions", "expires_in_seconds"}, map[string]kind{
		"max_actions": anInteger, "max_value_usd": anAmount, "expires_in_seconds": anInteger, "partial": aBoolean,
	}}
	lease := w.lease(leasing, wanted.with(fields{"expires_in_seconds": 60}), key).is(201).text("id")
	ask := bodyEndpoint{"POST", "/sessions/" + session + "/requests", asAgent(tokens.access), fields{"add_actions": 1, "reason": "r"},
		[]string{"reason"}, map[string]kind{"add_actions": anInteger, "add_value_usd": anAmount, "reason": aText}}
	asked := w.post(ask.path, ask.valid, ask.as).is(201).text("id")
	nothing := map[string]kind{}
	refreshToken := map[string]kind{"refresh_token": aText}
	grace := map[string]kind{"grace_seconds": anInteger}
	return []bodyEndpoint{
		{"POST", "/v1/organizations", anonymous, fields{"name": "n"}, []string{"name"},
			map[string]kind{"name": aText, "metadata": anObject}},
		{"POST", "/v1/organizations/" + w.org + "/api-key/rotate", key, fields{}, nil, grace},
		{"POST", "/v1/api-keys", key, fields{"name": "n", "role": "viewer"}, []string{"name", "role"}, map[string]kind{
			"name": aText, "role": aText, "expires_in_seconds": anInteger,
		}},
		{"POST", "/v1/api-keys/" + w.newKey("viewer").id + "/rotate", key, fields{}, nil, grace},
		{"POST", "/v1/agents", key, fields{"name": "n", "scopes": list("a")}, []string{"name", "scopes"},
			map[string]kind{"name": aText, "scopes": scopeList, "description": aText, "metadata": anObject}},
		{"POST", "/v1/agents/" + w.agent.id + "/revoke", key, fields{}, nil, nothing},
		{"DELETE", "/v1/agents/" + w.agent.id, key, fields{}, nil, nothing},
		{"POST", "/v1/agents/" + w.agent.id + "/secret/rotate", key, fields{}, nil,
			map[string]kind{"grace_seconds": anInteger, "revoke_families": aBoolean}},
		{"DELETE", "/v1/agents/" + w.agent.id + "/families/" + tokens.family(), key, fields{}, nil, nothing},
		{"POST", "/v1/auth/token", anonymous, fields{"agent_id": w.agent.id, "secret": w.agent.secret},
			[]string{"agent_id", "secret"}, map[string]kind{"agent_id": aUUID, "secret": aText}},
		{"POST", "/v1/auth/refresh", anonymous, fields{"refresh_token": tokens.refresh}, []string{"refresh_token"}, refreshToken},
		{"POST", "/v1/auth/revoke", asAgent(tokens.access), fields{"refresh_token": tokens.refresh},
			[]string{"refresh_token"}, refreshToken},
		newSession, newSession.at("/v1/sessions"),
		charge, charge.at("/v1" + charge.path),
		change, change.at("/v1" + change.path),
		grant, grant.at("/v1" + grant.path),
		ask, ask.at("/v1" + ask.path),
		{"POST", ask.path + "/" + asked + "/approve", key, fields{}, nil,
			map[string]kind{"add_actions": anInteger, "add_value_usd": anAmount, "comment": aText}},
		{"POST", ask.path + "/" + asked + "/deny", key, fields{}, nil, map[string]kind{"comment": aText}},
		{"POST", "/v1/leases/" + lease + "/settle", asAgent(tokens.access), fields{"action_count": 1, "value_used_usd": 0},
			[]string{"action_count", "value_used_usd"}, map[string]kind{
				"action_count": anInteger, "value_used_usd": anAmount, "by_action_type": knownFields, "renew": knownFields,
			}},
		{"POST", "/v1/trusted-issuers", key, trustedIssuer(w.agent.id), []string{"issuer", "jwks_uri", "rules"}, map[string]kind{
			"issuer": aText, "jwks_uri": aText, "rules": itemList, "description": aText,
		}},
		{"POST", "/v1/actions", key, batchOf(fields{"session_id": session}), nil, map[string]kind{"actions": itemList}},
		begin,
		{"PATCH", "/v1/transactions/" + transaction, asAgent(tokens.access), fields{"value_usd": 1}, nil,
			map[string]kind{"value_usd": anAmount, "expires_in_seconds": anInteger}},
		{"POST", "/v1/transactions/" + transaction + "/commit", asAgent(tokens.access), fields{}, nil,
			map[string]kind{"value_usd": anAmount, "post_state": anObject}},
		{"POST", "/v1/transactions/" + transaction + "/rollback", key, fields{}, nil, map[string]kind{"reason": aText}},
		{"POST", "/sessions/" + session + "/end", asAgent(tokens.access), fields{}, nil, nothing},
		{"POST", "/v1/sessions/" + session + "/end", key, fields{}, nil, nothing},
	}
}

func anonymous(http.Header) {}

func (e bodyEndpoint) at(path string) bodyEndpoint {
	e.path = path
	return e
}

// onEachBodyEndpoint runs the test on each, of a tenant of its own, and checks that nothing was written: it is for
// refusals.
func onEachBodyEndpoint(t *testing.T, test func(c *client, e bodyEndpoint)) {
	t.Helper()
	t.Parallel()
	api := onMiniredis(t, setup{})
	for i := range bodyEndpoints(api.newTenant()) {
		e := bodyEndpoints(api.newTenant())[i]
		t.Run(e.method+idInPath.ReplaceAllString(strings.ReplaceAll(e.path, "/", " "), "id"), func(t *testing.T) {
			wantNothingWritten(t, api, func() { test(api.in(t), e) })
		})
	}
}

var idInPath = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// wantNothingWritten fails the test if Redis holds anything else after the requests than before.
func wantNothingWritten(t *testing.T, api *client, requests func()) {
	t.Helper()
	before := stored(t, api.on.mini)
	requests()
	after := stored(t, api.on.mini)
	for at, value := range after {
		if was, ok := before[at]; !ok || was != value {
			t.Errorf("a refused request was carried out; new in Redis: %s: %s", at, value)
		}
	}
	if len(after) != len(before) {
		t.Errorf("a refused request was carried out; Redis holds %d values, and %d before", len(after), len(before))
	}
}

// stored returns every value that Redis holds, by its key and its place there. (Dump of miniredis takes far longer.)
func stored(t *testing.T, mini *miniredis.Miniredis) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range mini.Keys() {
		switch kind := mini.Type(key); kind {
		case "string":
			all[key] = must(mini.Get(key))(t)
		case "hash":
			for _, field := range must(mini.HKeys(key))(t) {
				all[key+" "+field] = mini.HGet(key, field)
			}
		case "zset":
			for member, score := range must(mini.SortedSet(key))(t) {
				all[key+" "+member] = strconv.FormatFloat(score, 'g', -1, 64)
			}
		case "stream":
			for _, entry := range must(mini.Stream(key))(t) {
				all[key+" "+entry.ID] = strings.Join(entry.Values, " ")
			}
		default:
			t.Fatalf("%s is a %s, which this test cannot read", key, kind)
		}
	}
	return all
}

func (c *client) send(e bodyEndpoint, body any, options ...option) *response {
	c.t.Helper()
	return c.ask(e.method, e.path, body, append(options, e.as)...)
}

// member returns a JSON object with one member more behind its others, which may be one that it has.
func member(object fields, name string, value any) raw {
	all := strings.TrimSuffix(string(mustEncode(object)), "}")
	if len(object) > 0 {
		all += ","
	}
	return raw(all + string(mustEncode(name)) + ":" + string(mustEncode(value)) + "}")
}

func mustEncode(value any) []byte {
	text, err := encode(value)
	if err != nil {
		panic(err)
	}
	return text
}

package server_test

import (
	"maps"
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
	another kind = iota // what takes values of several types
	aText
	aUUID
	anInteger
	anAmount
	scopeList
	anObject
	knownFields // an object with fields of its own
	aBoolean
	itemList
)

func kindOf(field string, s server.Schema) kind {
	switch {
	case s.Format == "uuid":
		return aUUID
	case s.Type == "array" && field == "scopes":
		return scopeList
	case s.Type == "array" && s.MinItems > 0:
		return itemList
	case s.Type == "object" && s.AdditionalProperties == true && s.Properties == nil:
		return anObject
	case s.Type == "object" && s.AdditionalProperties != true:
		return knownFields
	}
	return map[any]kind{"string": aText, "integer": anInteger, "number": anAmount, "boolean": aBoolean}[s.Type]
}

// bodyEndpoint is an endpoint that reads a body, with one that it would accept.
type bodyEndpoint struct {
	method, path string
	as           option
	valid        fields
	required     []string
	schema       server.Schema
	kinds        map[string]kind // of all its fields
}

// eitherOf are fields of which one is required, by operation: openapi.json says so in words. The first is named when both are missing.
var eitherOf = map[string][2]string{"grantLease": {"max_actions", "max_value_usd"}, "createTrustedIssuer": {"jwks_uri", "jwks"}}

// bodyEndpoints returns all endpoints that read a JSON body.
func bodyEndpoints(w tenant) (all []bodyEndpoint) {
	session, key, access := w.newSession(nil), asKey(w.key), asAgent(w.exchange().access)
	for _, o := range server.Operations() {
		if o.JSON == nil {
			continue
		}
		e := bodyEndpoint{method: o.Method, as: credentialOf(o, key, access), valid: w.bodyOf(o, session), required: o.JSON.Required,
			schema: *o.JSON, kinds: map[string]kind{}}
		if either, found := eitherOf[o.ID]; found {
			e.required, e.valid = append(slices.Clone(e.required), either[0]), e.valid.without(either[1])
		}
		for field, schema := range o.JSON.Properties {
			e.kinds[field] = kindOf(field, schema)
		}
		for _, e.path = range pathsOf(o, func(_, object string) string { return w.idOf(object, session, session) }) {
			all = append(all, e)
		}
	}
	return all
}

func anonymous(http.Header) {}

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
	if after := stored(t, api.on.mini); !maps.Equal(after, before) {
		t.Errorf("a refused request was carried out; Redis holds %v, and before %v", after, before)
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

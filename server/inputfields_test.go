package server_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"remit/server"
)

// notOf holds JSON values that are not of a kind, whatever their digits.
var notOf = map[kind][]raw{
	aText:       {"5", "true", "{}", "[]", `["x"]`},
	aUUID:       {"5", "true", "{}", "[]"},
	anInteger:   {`"5"`, `""`, "true", "{}", "[]", "[5]", "1.5", "1e400", "-1", "9007199254740993", "9223372036854775808", "1e3"},
	anAmount:    {`"5"`, `""`, "true", "{}", "[]", "[5]", "-1", "1e400", "0.0000001", "1000000000.000001", "9007199254740993"},
	scopeList:   {`"read"`, "5", "true", "{}", `{"0":"read"}`},
	anObject:    {`"x"`, `"{}"`, "5", "true", "[]", "[{}]"},
	knownFields: {`"x"`, `"{}"`, "5", "true", "[]", "[{}]"},
	aBoolean:    {`"true"`, "1", "0", "{}", "[]", "[true]"},
	itemList:    {`"x"`, "5", "true", "{}", `{"0":{}}`, "[]"},
}

func TestAFieldOfAnotherTypeIsRefusedByItsName(t *testing.T) {
	onEachBodyEndpoint(t, func(c *client, e bodyEndpoint) {
		for field, kind := range e.kinds {
			if kind == another {
				continue
			}
			for _, value := range append(notOf[kind], "null") {
				c.send(e, member(e.valid.without(field), field, value)).invalid(field)
			}
			if kind == scopeList {
				for _, item := range []raw{"5", "null", "true", "{}", `["read"]`} {
					c.send(e, member(e.valid.without(field), field, `["read",`+item+`]`)).invalid(field + "[1]")
				}
			}
		}
	})
}

// beyond returns values that are just outside the bounds of a field, and what is in no enumeration.
func beyond(s server.Schema) (values []any) {
	if s.MaxLength > 0 {
		values = append(values, strings.Repeat("é", s.MaxLength+1))
	}
	if s.MinLength > 0 {
		values = append(values, "")
	}
	if len(s.Enum) > 0 {
		values = append(values, "x", strings.ToUpper(fmt.Sprint(s.Enum[0])))
	}
	step := map[any]string{"integer": "1", "number": "0.000001"}[s.Type]
	for bound, direction := range map[json.Number]int{s.Minimum: -1, s.Maximum: 1} {
		if bound != "" && step != "" {
			number, _ := new(big.Rat).SetString(bound.String())
			by, _ := new(big.Rat).SetString(step)
			if direction < 0 {
				by.Neg(by)
			}
			values = append(values, num(strings.TrimSuffix(number.Add(number, by).FloatString(6), ".000000")))
		}
	}
	return values
}

func TestAFieldBeyondItsBoundsIsRefusedByItsName(t *testing.T) {
	onEachBodyEndpoint(t, func(c *client, e bodyEndpoint) {
		for field, schema := range e.schema.Properties {
			for _, value := range beyond(schema) {
				c.send(e, member(e.valid.without(field), field, value)).invalid(field)
			}
		}
		if e.schema.MinProperties > 0 {
			c.send(e, nil).invalid("")
			c.send(e, fields{}).invalid("")
		}
	})
}

// atBounds returns values at the bounds of a field, and all of an enumeration. Characters count, not bytes. What else a field must be, such
// as a URL, its own tests know.
func atBounds(field string, s server.Schema) (values []any) {
	if s.Format == "uuid" || s.Format == "uri" || slices.Contains([]string{"scope", "url", "issuer", "audience"}, field) {
		return nil
	}
	if s.MaxLength > 0 {
		values = append(values, "é", strings.Repeat("é", s.MaxLength), strings.Repeat("🤖", s.MaxLength))
	}
	for _, bound := range []json.Number{s.Minimum, s.Maximum} {
		if bound != "" {
			values = append(values, bound)
		}
	}
	return append(values, s.Enum...)
}

// beyondOthers is what is said of a field for what another one is.
var beyondOthers = regexp.MustCompile(`cannot be given together|must be more than 0|must not make`)

func TestAFieldMayHaveItsBounds(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	for i := range bodyEndpoints(api.newTenant()) {
		e := bodyEndpoints(api.newTenant())[i]
		for field, schema := range e.schema.Properties {
			for _, value := range atBounds(field, schema) {
				r := api.send(e, member(e.valid.without(field), field, value))
				if r.status == 400 && strings.Contains(string(r.body), fmt.Sprintf(`"field":%q`, field)) && !beyondOthers.Match(r.body) {
					t.Errorf("%s: %s = %.40v: %s", r.what, field, value, r.body)
				}
				var got fields
				_ = decodeInto(r.body, &got)
				if text, is := got[field].(string); is && r.status < 300 && text != value {
					t.Errorf("%s: %s = %.40v came back as %.40s", r.what, field, value, text)
				}
			}
		}
	}
}

func TestARequiredFieldThatIsMissingIsNamed(t *testing.T) {
	onEachBodyEndpoint(t, func(c *client, e bodyEndpoint) {
		if len(e.required) == 0 {
			return
		}
		for _, field := range e.required {
			c.send(e, e.valid.without(field)).invalid(field)
		}
		c.send(e, fields{}).invalid(e.required...)
		c.send(e, nil).invalid(e.required...)
	})
}

func TestOneAnswerNamesAllThatIsWrong(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	w.post("/sessions", fields{
		"agent_id": "x", "max_actions": 0, "expires_in_seconds": 2_592_001, "scopes": list("a", "a", ""), "metadata": list(),
	}, asKey(w.key)).invalid("agent_id", "max_actions", "expires_in_seconds", "scopes[1]", "scopes[2]", "metadata")
	w.get("/sessions?limit=0&status=x&cursor=!&agent_id=x&foo=1", asKey(w.key)).
		invalid("limit", "status", "cursor", "agent_id", "foo")
}

// otherForms returns what libraries take for the UUID and RFC 9562 §4 does not, of characters that a path may have.
func otherForms(id string) []string {
	return []string{
		"x", id[:35], id + "0", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), strings.ReplaceAll(id, "-", "_"),
		id[:35] + "g", id[:9] + id[10:] + "-",
	}
}

func TestOtherFormsOfIdsAreRefusedByTheFieldTheyAreIn(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	id, key := w.newSession(nil), asKey(w.key)
	access := asAgent(w.exchange().access)
	wantNothingWritten(t, api, func() {
		for _, form := range append(otherForms(w.agent.id), "", "{"+w.agent.id+"}", " "+w.agent.id[1:]) {
			w.post("/sessions", fields{"agent_id": form}, key).invalid("agent_id")
			w.post("/v1/auth/token", fields{"agent_id": form, "secret": w.agent.secret}).invalid("agent_id")
			w.get("/sessions?agent_id="+url.QueryEscape(form), key).invalid("agent_id")
			w.beginAs(access, fields{"session_id": form}).invalid("session_id")
		}
		for _, o := range server.Operations() {
			if o.ForProxies { // what follows is the client's path
				continue
			}
			for name, object := range o.Objects {
				for _, form := range otherForms(w.idOf(object, id, id)) {
					w.refusedAsID(o, name, form, id, access)
				}
			}
		}
	})
}

// refusedAsID fails the test unless each caller of an operation gets this form of an id refused by its name.
func (w tenant) refusedAsID(o server.Operation, name, form, session string, access option) {
	w.t.Helper()
	for _, path := range pathsOf(o, func(other, object string) string {
		if other == name {
			return form
		}
		return w.idOf(object, session, session)
	}) {
		if o.ByKey {
			w.ask(o.Method, path, w.bodyOf(o, session), asKey(w.key)).invalid(name)
		}
		if o.ByToken {
			w.ask(o.Method, path, w.bodyOf(o, session), access).invalid(name)
		}
	}
}

// scopesOf returns count distinct scopes of size characters.
func scopesOf(count, size int) []any {
	scopes := []any{}
	for i := range count {
		scopes = append(scopes, fmt.Sprintf("%0*d", size, i))
	}
	return scopes
}

func TestScopesAreHeldToTheirBounds(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	visible := ""
	for c := byte(0x21); c <= 0x7e; c++ {
		if c != '"' && c != '\\' {
			visible += string(c)
		}
	}
	accepted := 0
	for _, test := range []struct {
		name    string
		scopes  []any
		refused []string
	}{
		{"none", list(), nil},
		{"every character", list(visible), nil},
		{"64", scopesOf(64, 2), nil},
		{"65", scopesOf(65, 2), []string{"scopes"}},
		{"600 characters", scopesOf(60, 10), nil},
		{"600 characters in one", list(long(600)), nil},
		{"601 characters", append(scopesOf(60, 10), "x"), []string{"scopes"}},
		{"601 characters in one", list(long(601)), []string{"scopes"}},
		{"a duplicate", list("a", "b", "a"), []string{"scopes[2]"}},
		{"the same in another case", list("a", "A"), nil},
		{"an empty one", list("a", ""), []string{"scopes[1]"}},
		{"a space", list("a b"), []string{"scopes[0]"}},
		{"a quote", list(`a"`), []string{"scopes[0]"}},
		{"a backslash", list(`a\b`), []string{"scopes[0]"}},
		{"not ASCII", list("é"), []string{"scopes[0]"}},
		{"a control character", list("a", "\x00", "\x7f"), []string{"scopes[1]", "scopes[2]"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := fields{"name": "n", "scopes": test.scopes}
			r := w.in(t).post("/v1/agents", body, asKey(w.key))
			if test.refused != nil {
				r.invalid(test.refused...)
				return
			}
			accepted++
			wantFields(t, "the agent", fields{"scopes": r.is(201).object()["scopes"]}, fields{"scopes": test.scopes})
			of := tenant{client: w.in(t), agent: agent{r.text("id"), r.text("secret")}}
			tokens := of.exchange()
			if len(tokens.access) > 2048 {
				t.Errorf("its access token has %d bytes", len(tokens.access))
			}
			of.get("/sessions", asAgent(tokens.access)).is(200)
		})
	}
	agents := len(w.get("/v1/agents?limit=200", asKey(w.key)).is(200).ids())
	wantEqual(t, "agents, without refused ones", agents, 1+accepted)
}

// nested returns metadata that makes the whole body this deep: body, metadata, and arrays in it.
func nested(depth int) raw {
	inner := depth - 2
	return raw(`{"k":` + strings.Repeat("[", inner) + strings.Repeat("]", inner) + "}")
}

func TestABodyIsAtMost32Deep(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	for _, e := range bodyEndpoints(w) {
		field := "metadata"
		if e.path == "/v1/transactions" {
			field = "pre_state"
		} else if !slices.Contains([]string{"/v1/organizations", "/v1/agents", "/sessions"}, e.path) {
			continue
		}
		valid := e.valid.without(field)
		created := w.send(e, member(valid, field, nested(32))).is(201)
		wantEqual(t, field, string(must(encode(created.object()[field]))(t)), string(nested(32)))
		wantNothingWritten(t, api, func() {
			body := member(valid, field, nested(33))
			w.send(e, body).malformedAt(strings.LastIndex(string(body), "["))
			w.send(e, member(valid, field, nested(100_000))).malformedAt(strings.Index(string(body), "[[[") + 30)
		})
		// Brackets in a text do not nest.
		text := raw(`{"k":"` + strings.Repeat(`[{\"`, 50) + `\\"}`)
		w.send(e, member(valid, field, text)).is(201)
	}
}

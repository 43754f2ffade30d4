package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/server/budgets"
	"remit/server/internal/web"
)

// FuzzBody holds the reading of bodies against encoding/json: whatever is read, it reads too, with equal values; whatever
// it would repair (duplicates, other spellings, null, invalid UTF-8, what comes behind) is refused; and nothing else is.
// What an idempotency key is tied to, the canonical body, says the same as the body.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `{}`, ` {"action_type":"pay"} `, `{"action_type":"pay","pre_state":{"b":[1,2.50,{"a":null}],"a":"\u00e9"},"value_usd":1.5}`,
		`{"value_usd":1e2,"expires_in_seconds":60,"reversible":false,"session_id":"x","metadata":{"k":{}}}`,
		`{"expires_in_seconds":1e2}`, `{"expires_in_seconds":1.0}`, `{"expires_in_seconds":-0}`, `{"expires_in_seconds":9223372036854775808}`,
		`{"expires_in_seconds":"60"}`, `{"value_usd":"1"}`, `{"value_usd":0.0000001}`, `{"value_usd":1e400}`, `{"reversible":0}`,
		`{"action_type":"a","action_type":"b"}`, `{"action_type":"a","act\u0069on_type":"b"}`, `{"Action_Type":"a"}`, `{"action_type ":"a"}`,
		`{"actionType":"a"}`, `{"pre_state":{"a":1,"a":2}}`, `{"pre_state":{"a":1,"\u0061":2}}`, `{"action_type":null}`, `null`, `[]`, `"{}"`,
		`{} {}`, `{},`, `{"action_type":"a",}`, `{'action_type':'a'}`, `{"action_type":"a"}//`, "\xef\xbb\xbf{}", "{\"action_type\":\"\xff\"}",
		"{\"\xff\":1}", `{"action_type":"\ud800"}`, `{"action_type":"\ud83d\ude00"}`, "{\"action_type\":\"\x00\"}", "{\"action_type\":\"a\nb\"}",
		"{\u00a0}", "{}\x00", `{"pre_state":` + nested(31) + `}`, `{"pre_state":` + nested(32) + `}`, `{"pre_state":{"[[":"\"{["}}`,
		`{"pre_state":{"b":2,"a":1,"":0}}`, `{"pre_state":{"n":1.0,"m":1e0,"o":-0,"p":123456789012345678901234567890}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		request, err := readBegin(body)
		want, refusal := strictly(body)
		if (err == nil) != (refusal == nil) {
			t.Fatalf("%q is read with %v, strictly with %v", body, err, refusal)
		}
		if err != nil {
			var problem *web.InvalidRequest
			if !errors.As(err, &problem) {
				t.Fatalf("%q: %v is no refusal of ours", body, err)
			}
			return
		}
		requireSame(t, body, request, want)
		canon, err := web.Canonical(body)
		if err != nil {
			t.Fatalf("%q has no canonical form: %v", body, err)
		}
		same, err := readBegin(canon)
		if err != nil {
			t.Fatalf("%q is canonical for %q, and refused: %v", canon, body, err)
		}
		requireSame(t, canon, same, want)
		var spaced bytes.Buffer
		if len(body) > 0 {
			_ = json.Indent(&spaced, body, " ", "\t") // it is JSON: it was read
		}
		for _, other := range [][]byte{canon, spaced.Bytes()} {
			if again, err := web.Canonical(other); err != nil || !bytes.Equal(again, canon) {
				t.Fatalf("%q is canonically %q, %v, and %q is %q", other, again, err, body, canon)
			}
		}
	})
}

func nested(deep int) string {
	return strings.Repeat(`{"a":`, deep-1) + `{}` + strings.Repeat(`}`, deep-1)
}

// readBegin reads the body as that of the request that has fields of every kind.
func readBegin(body []byte) (budgets.BeginRequest, error) {
	var request budgets.BeginRequest
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetContentType("application/json")
	ctx.Request.SetBody(body)
	err := web.Decode(&ctx, &request)
	return request, err
}

// strictly reads the body by encoding/json alone, as strictly as decode promises to. A field that is not given is missing.
func strictly(body []byte) (map[string]any, error) {
	fields := map[string]any{}
	if len(body) == 0 {
		return fields, nil
	}
	if !utf8.Valid(body) || loneSurrogate(body) {
		return nil, errors.New("not UTF-8")
	}
	if err := checkTokens(body); err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	for name, raw := range members {
		value, err := valueOf(name, raw)
		if err != nil {
			return nil, err
		}
		fields[name] = value
	}
	return fields, nil
}

// zeros are the fields of BeginRequest by their types; nil is any JSON.
var zeros = map[string]any{
	"action_type": "", "session_id": "", "on_expiry": "", "expires_in_seconds": int64(0), "reversible": false, "value_usd": money.MicroUSD(0),
	"pre_state": nil, "metadata": nil,
}

// valueOf reads the value of one field of BeginRequest.
func valueOf(name string, raw json.RawMessage) (any, error) {
	zero, known := zeros[name]
	switch {
	case !known || string(raw) == "null":
		return nil, errors.New("unknown field, or null")
	case zero == nil:
		return asRead(raw), nil
	}
	into := reflect.New(reflect.TypeOf(zero))
	err := json.Unmarshal(raw, into.Interface())
	return into.Elem().Interface(), err
}

// asRead is a value with its numbers as they are written.
func asRead(raw []byte) any {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	_ = decoder.Decode(&value) // checkTokens has read it
	return value
}

// checkTokens walks over the body: one object, no name twice in one, at most MaxDepth deep, and nothing behind it.
func checkTokens(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var open []map[string]bool // names so far, nil for an array
	expectName := func() bool { return len(open) > 0 && open[len(open)-1] != nil && !open[len(open)-1]["\x00value"] }
	for first := true; ; first = false {
		token, err := decoder.Token()
		if err == io.EOF && !first && len(open) == 0 && json.Valid(body) {
			return nil
		}
		if err != nil {
			return err
		}
		if first && token != json.Delim('{') {
			return errors.New("no object")
		}
		if !first && len(open) == 0 {
			return errors.New("trailing value")
		}
		if name, isText := token.(string); isText && expectName() {
			names := open[len(open)-1]
			if names[":"+name] {
				return errors.New("duplicate name")
			}
			names[":"+name], names["\x00value"] = true, true
			continue
		}
		switch token {
		case json.Delim('{'):
			open = append(open, map[string]bool{})
		case json.Delim('['):
			open = append(open, nil)
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if token != json.Delim('{') && token != json.Delim('[') && len(open) > 0 && open[len(open)-1] != nil {
			delete(open[len(open)-1], "\x00value")
		}
		if len(open) > web.MaxDepth {
			return errors.New("too deep")
		}
	}
}

// loneSurrogate says whether a \u escape stands for half a character, which encoding/json would replace.
func loneSurrogate(body []byte) bool {
	half := func(at int) (uint64, bool) {
		if at+6 > len(body) || body[at] != '\\' || body[at+1] != 'u' {
			return 0, false
		}
		unit, err := strconv.ParseUint(string(body[at+2:at+6]), 16, 16)
		return unit, err == nil
	}
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		unit, isUnit := half(i)
		if isUnit && unit >= 0xd800 && unit <= 0xdfff {
			low, isLow := half(i + 6)
			if unit >= 0xdc00 || !isLow || low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 6
		}
		i++
	}
	return false
}

// requireSame compares a request with the fields that encoding/json has read.
func requireSame(t *testing.T, body []byte, got budgets.BeginRequest, want map[string]any) {
	t.Helper()
	fields := map[string]any{}
	add := func(name string, given bool, value any) {
		if given {
			fields[name] = value
		}
	}
	add("action_type", got.ActionType.Given, got.ActionType.Value)
	add("session_id", got.Session.Given, got.Session.Value)
	add("expires_in_seconds", got.ExpiresIn.Given, got.ExpiresIn.Value)
	add("reversible", got.Reversible.Given, got.Reversible.Value)
	add("on_expiry", got.OnExpiry.Given, got.OnExpiry.Value)
	add("value_usd", got.Value.Given, got.Value.Value)
	add("pre_state", got.PreState.Given, asRead(got.PreState.Value))
	add("metadata", got.Metadata.Given, asRead(got.Metadata.Value))
	if !reflect.DeepEqual(fields, want) {
		t.Errorf("%q is read as %v, want %v", body, fields, want)
	}
}

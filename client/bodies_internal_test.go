package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"math/big"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"remit/money"
)

// hostile has what encoders treat differently: quotes, control characters, HTML, the line ends of JavaScript, characters
// beyond the BMP, and invalid UTF-8.
const hostile = "\"\\/\b\f\n\r\t\x00\x1f\x7f<b>&'\u00e9\u2028\u2029\uFFFD\U0001F600\xff\xed\xa0\x80"

// firstEncoded is a body as the encoder writes it that the SDK had first.
func firstEncoded(body any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(body)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// Metadata and states are whatever a program passes: the SDK's encoder passes over MarshalJSON of a pointer in a type that contains itself.
type (
	embedding struct {
		Next *embedding         `json:"next,omitempty"`
		Own  pointerMarshaler   `json:"own,omitempty"`
		Each []pointerMarshaler `json:"each"`
	}
	pointerMarshaler struct{ text string }
)

func (p *pointerMarshaler) MarshalJSON() ([]byte, error) {
	return []byte(`{ "<own>" : "` + p.text + `" }`), nil
}

func metadata() map[string]any {
	whole := embedding{&embedding{}, pointerMarshaler{"x"}, []pointerMarshaler{{"a"}, {}}}
	return map[string]any{
		"struct": whole, "pointer": &whole, "nil pointer": (*embedding)(nil),
		"map":     map[string]any{"z": 1, "a": hostile, "": nil, hostile: []any{}, "n": map[string]any{"x": []int(nil)}},
		"numbers": []any{math.MaxInt64, uint64(math.MaxUint64), 1e20, 1e21, 1e-6, 1e-7, math.Copysign(0, -1), math.MaxFloat64, float32(16777216), json.Number("1e400")},
		"big":     map[string]*big.Int{"n": new(big.Int).Lsh(big.NewInt(1), 200)}, "keys": map[int]string{2: "b", 10: "a", -1: "c"},
		"raw": json.RawMessage(" { \"a\" : 1 , \"a\" : 2 } "), "time": struct{ At time.Time }{},
		"channel": map[string]any{"c": make(chan int)}, "not a number": []float64{math.NaN()}, "half": json.RawMessage(`{`),
		"credential": struct{ C Credential }{"rmk_secret"}, "year": time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

type recorder struct{ body []byte }

func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	answer := `{"access_token":"a","refresh_token":"r","expires_in":3600}`
	if q.URL.Path != "/v1/auth/token" {
		answer = `{"id":"t1","status":"pending"}`
		r.body, _ = io.ReadAll(q.Body)
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: q}, nil
}

func second[T any](_ T, err error) error { return err }

func sentWith(ctx context.Context, c *Client, value any) map[string]func() error {
	organization, agent := c.Organization("k"), c.Agent("a1", "s")
	begun := TransactionParams{ActionType: hostile, PreState: value, Metadata: value}
	return map[string]func() error{
		"agent": func() error {
			return second(organization.CreateAgent(ctx, AgentParams{Name: hostile, Metadata: value}))
		},
		"organization": func() error {
			return second(c.CreateOrganization(ctx, OrganizationParams{Name: hostile, Metadata: value}))
		},
		"session": func() error {
			return second(organization.CreateSession(ctx, SessionParams{AgentID: hostile, Metadata: value}))
		},
		"begin":  func() error { return second(agent.Session("s1").Begin(ctx, begun)) },
		"commit": func() error { return agent.Transaction("t1").Commit(ctx, CommitParams{PostState: value}) },
	}
}

func TestRequestsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]any{
		"charge": Charge{hostile, money.Max, math.MaxInt64, hostile, Ask, "reason", "key"}, "least charge": Charge{},
		"batch": map[string]any{"actions": []SessionCharge{{"s1", Charge{Count: 1}}, {hostile, Charge{ActionType: hostile, Value: 1, Count: 1, Scope: "a"}}}},
		"lease": grantBody{math.MaxInt64, money.Max, 3600, true}, "least lease": grantBody{},
		"settlement": settleBody{7, money.Max, map[string]typeUsage{hostile: {7, money.Max}}, &grantBody{ExpiresIn: 1}},
		"no usage":   settleBody{ByActionType: map[string]typeUsage{}}, "least settlement": settleBody{},
		"empty batch":  map[string]any{"actions": []SessionCharge{}},
		"credentials":  map[string]string{"secret": hostile, "agent_id": "<>&"},
		"least limits": SessionLimits{}, "least session": SessionParams{},
	} {
		want, refused := firstEncoded(body)
		if got, err := encode(body); !bytes.Equal(got, want) || err != nil || refused != nil {
			t.Errorf("%s: %s, %v, want %s, %v", name, got, err, want, refused)
		}
	}
}

func TestWhatAProgramPassesKeepsItsBytes(t *testing.T) {
	t.Parallel()
	for name, value := range metadata() {
		r := &recorder{}
		c, err := New("http://remit.test", Options{HTTPClient: &http.Client{Transport: r}})
		if err != nil {
			t.Fatal(err)
		}
		want, refused := firstEncoded(value)
		for call, send := range sentWith(t.Context(), c, value) {
			count := map[string]int{"begin": 2}[call] // as the state and as metadata
			if err := send(); (err == nil) != (refused == nil) || err == nil && bytes.Count(r.body, want) < max(count, 1) {
				t.Errorf("%s with %s: %s, %v, want %s, %v", call, name, r.body, err, want, refused)
			}
		}
	}
}

func TestManyCallersEncodeAndDecodeTypesForTheFirstTime(t *testing.T) {
	t.Parallel()
	type first embedding
	type read SessionInfo
	value := map[string]any{"a": []first{{Own: pointerMarshaler{"x"}}, {Next: &embedding{}}}}
	want, err := firstEncoded(value)
	if err != nil {
		t.Fatal(err)
	}
	begin := make(chan struct{})
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			<-begin
			if got, err := encode(value); !bytes.Equal(got, want) || err != nil {
				t.Errorf("%s, %v, want %s", got, err, want)
			}
			var info []read
			if err := decode([]byte(`[{"id":"s1","max_value_usd":0.000001,"scopes":["a"],"metadata":{"a":[1]}}]`), &info); err != nil ||
				len(info) != 1 || info[0].ID != "s1" || info[0].MaxValue != 1 || string(info[0].Metadata) != `{"a":[1]}` {
				t.Errorf("%+v, %v", info, err)
			}
		})
	}
	close(begin)
	callers.Wait()
}

var answerTypes = []reflect.Type{
	reflect.TypeFor[AgentInfo](), reflect.TypeFor[SessionInfo](), reflect.TypeFor[[]SessionSummary](), reflect.TypeFor[TransactionInfo](),
	reflect.TypeFor[OrganizationInfo](), reflect.TypeFor[[]Event](), reflect.TypeFor[[]Family](), reflect.TypeFor[[]batchResult](),
	reflect.TypeFor[Usage](), reflect.TypeFor[TokenPair](), reflect.TypeFor[Introspection](), reflect.TypeFor[RotatedKey](),
	reflect.TypeFor[[]usageLine](), reflect.TypeFor[[]APIKeyInfo](), reflect.TypeFor[[]WebhookInfo](), reflect.TypeFor[[]Delivery](),
	reflect.TypeFor[struct{}](), reflect.TypeFor[LimitReached](),
}

// requireReadAsAtFirst compares how an answer is read with how the SDK's first decoder reads it.
func requireReadAsAtFirst(t *testing.T, text []byte) {
	t.Helper()
	for _, kind := range answerTypes {
		want, got := reflect.New(kind), reflect.New(kind)
		refused := json.Unmarshal(text, want.Interface())
		if string(bytes.TrimSpace(text)) == "null" {
			continue // decode refuses it
		}
		err := decode(text, got.Interface())
		if (err == nil) != (refused == nil) || err == nil && !reflect.DeepEqual(got.Interface(), want.Interface()) {
			t.Errorf("%.200q as %s: %+v, %v, want %+v, %v", text, kind, got.Elem(), err, want.Elem(), refused)
		}
	}
}

// texts are answers that decoders read differently.
var texts = []string{
	`{"id":"a","ID":"b","Id":"c","id":"d","unknown":{"x":[1,{"y":"\u0000"}]}}`, `{"max_value_usd":1000000000,"max_actions":9007199254740993}`,
	`{"max_value_usd":0.0000001}`, `{"max_value_usd":1e400}`, `{"max_value_usd":1e-6}`, `{"max_value_usd":"1"}`, `{"max_value_usd":null,"scopes":null,"metadata":null}`,
	`{"max_value_usd":12.300000}`, `{"max_value_usd":92233720368547758.08}`, `{"max_value_usd":-0}`, `{"max_value_usd":01}`, `{"max_value_usd":true}`,
	`{"max_actions":1e3}`, `{"max_actions":1.0}`, `{"max_actions":9223372036854775808}`, `{"max_actions":-0}`, `{"max_actions":"1"}`,
	`{"expires_at":"2026-11-21T08:19:32.859Z","created_at":"2026-11-21T08:19:32,859+24:00"}`, `{"expires_at":""}`, `{"expires_at":1}`, `{"expires_at":null}`,
	`{"metadata": { "a" : 1 , "a" : 2, "<\u2028" : "\ud800" } }`, `{"metadata":"x","pre_state":[ 1 ],"body": null ,"data":1e999}`,
	"{\"id\":\"a\xff\xed\xa0\x80\"}", `{"id":"\ud800\udc00\ud800x\udc00"}`, "{\"id\":\"\x00\"}", "{\"id\":\"\t\"}", "{\"id\":\"\u2028\x7f\"}", `{"id":"\x"}`,
	`{"scopes":["a",null,"b"],"quotas":{"a":1,"A":2,"a":3,"b":1.0,"c":null},"usage":[]}`, `{"late":1}`, `{"late":"true"}`, `{"reversible":null}`,
	`[{"status":200,"body":{"a":1}},{"status":"200"},null,{}]`, `[]`, `[null]`, `{}`, ``, ` `, `nul`, `{"a":1}{}`, `{"a":1} x`, "\ufeff{}", `{"a":1,}`, `[1,]`, `{a:1}`,
	"\t{ \"id\"\n:\r\"a\" }\n", `{"actor":{"type":"agent","id":null},"id":7}`, `"x"`, `7`, `true`, `{"max_committed_usd":0}`, `{"max_committed_usd":{}}`,
	`{"Limit":"l","action_count":3,"Status":403}`, strings.Repeat("[", 10001) + strings.Repeat("]", 10001), strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200),
}

func FuzzAnswersAreReadAsAtFirst(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(requireReadAsAtFirst)
}

func FuzzRequestsKeepTheirBytes(f *testing.F) {
	f.Add(hostile, []byte(`{"a":"<\u2028"}`))
	f.Fuzz(func(t *testing.T, text string, raw []byte) {
		var value any
		if json.Unmarshal(raw, &value) != nil {
			value = raw
		}
		for _, body := range []any{
			Charge{ActionType: text, Scope: text}, AgentParams{Name: text, Metadata: json.RawMessage(raw)},
			AgentParams{Metadata: asGiven(map[string]any{text: value})}, AgentParams{Metadata: asGiven(value)},
		} {
			want, refused := firstEncoded(body)
			if got, err := encode(body); (err == nil) != (refused == nil) || err == nil && !bytes.Equal(got, want) {
				t.Errorf("%q, %q: %s, %v, want %s, %v", text, raw, got, err, want, refused)
			}
		}
	})
}

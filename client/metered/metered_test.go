package metered

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"remit/client"
	"remit/client/prices"
)

const someTable = `{
	"small": {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6, "max_input_tokens": 1000, "max_output_tokens": 100},
	"open": {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}
}`

func parsed(t testing.TB, table string) *prices.Table {
	t.Helper()
	return must(prices.Parse([]byte(table)))(t)
}

func must[T any](value T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return value
	}
}

func post(t testing.TB, path, body string) *http.Request {
	t.Helper()
	return must(http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com"+path, strings.NewReader(body)))(t)
}

const (
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
	messagesPath  = "/v1/messages"
)

// What the rows of sdk/testdata/metering leave out.
func TestTheBoundOfACall(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	transport := &Transport{Prices: parsed(t, someTable), Models: map[string]string{"alias": "small"}}
	for _, row := range []struct {
		name, path, body string
		input, output    int64 // input of 0: the size of the body
	}{
		{"the newer name", chatPath, `{"model":"small","max_completion_tokens":8}`, 0, 8},
		{"the model's maximum for every choice", chatPath, `{"model":"small","n":2,"max_tokens":null}`, 0, 200},
		{"the model's input", chatPath, `{"model":"small","user":"` + long + `"}`, 1000, 100},
		{"another name", chatPath, `{"model":"alias"}`, 0, 100},
		{"no conversation", responsesPath, `{"model":"small","conversation":null,"previous_response_id":null}`, 0, 100},
		{"a link among the arguments of a tool", messagesPath, `{"model":"small","max_tokens":1,"messages":[{"content":[{"type":"tool_use","input":{"image_url":"https://example.com"}}]}]}`, 0, 1},
	} {
		r := post(t, row.path, row.body)
		format, _ := formatOf(r)
		q := must(transport.read(r, format))(t)
		if row.input == 0 {
			row.input = int64(len(row.body))
		}
		if q.MostInput != row.input || q.MostOutput != row.output {
			t.Errorf("%s: %d and %d, want %d and %d", row.name, q.MostInput, q.MostOutput, row.input, row.output)
		}
	}
}

func TestARefusalByValueSaysHowToNeedLess(t *testing.T) {
	t.Parallel()
	transport := &Transport{Prices: parsed(t, someTable)}
	const both, less = `{"model":"small","max_completion_tokens":5,"max_tokens":7}`, "(7 tokens of output): lower max_tokens, or send less"
	value := &client.LimitReached{Problem: new(client.Problem), Limit: "max_value_usd"}
	for _, row := range []struct {
		path, body string
		err        error
		says       string // empty: nothing more
	}{
		{chatPath, both, value, less},
		{chatPath, both, &client.LimitReached{Problem: new(client.Problem), Limit: "max_committed_usd"}, less},
		{chatPath, both, &client.LimitReached{Problem: new(client.Problem), Limit: "max_actions"}, ""},
		{chatPath, both, &client.AgentLimitReached{Problem: new(client.Problem), Limit: "max_value_usd_per_day"}, less},
		{chatPath, both, &client.AgentLimitReached{Problem: new(client.Problem), Limit: "max_actions_per_day"}, ""},
		{chatPath, both, &client.BudgetExhausted{Problem: new(client.Problem)}, less},
		{chatPath, both, io.EOF, ""},
		{chatPath, `{"model":"small"}`, value, "the call may cost up to 0.000001 USD (100 tokens of output): set max_completion_tokens"},
		{responsesPath, `{"model":"small"}`, value, "(100 tokens of output): set max_output_tokens"},
		{messagesPath, `{"model":"open","max_tokens":4000}`, value, "(4,000 tokens of output): lower max_tokens, or send less"},
	} {
		r := post(t, row.path, row.body)
		format, _ := formatOf(r)
		got := explained(must(transport.read(r, format))(t), row.err, 1)
		advises := strings.Contains(got.Error(), "tokens of output")
		if !errors.Is(got, row.err) || !strings.HasSuffix(got.Error(), row.says) || advises != (row.says != "") {
			t.Errorf("%s: %v", row.body, got)
		}
	}
}

// closing says whether a body was closed.
type closing struct {
	io.Reader
	closed *bool
}

func (c closing) Close() error {
	*c.closed = true
	return nil
}

// Of what is refused, sdk/testdata/metering has the rows.
func TestWhatHasNoBoundIsNotSent(t *testing.T) {
	t.Parallel()
	unreachable := base(func(r *http.Request) (*http.Response, error) {
		t.Errorf("%s was sent", r.URL)
		return nil, errors.New("sent")
	})
	transport := &Transport{Prices: parsed(t, someTable), Session: new(client.Session), Base: unreachable}
	for _, row := range []struct{ name, path, body, kind, says string }{
		{"no maximum", chatPath, `{"model":"open"}`, "UnboundedCall", "max_completion_tokens"},
		{"more than can be priced", chatPath, `{"model":"small","max_tokens":9007199254740991}`, "UnboundedCall", "priced"},
		{"an unknown model", chatPath, `{"model":"small-2025-04-14","max_tokens":1}`, "UnknownModel", "small-2025-04-14"},
		{"usage refused", chatPath, `{"model":"small","stream":true,"stream_options":{"include_usage":false}}`, "UsageMissing", "include_usage"},
		{"another path", "/v1/embeddings", `{"model":"small"}`, "UnboundedCall", "/v1/embeddings"},
	} {
		r := post(t, row.path, "")
		var closed bool
		r.Body = closing{strings.NewReader(row.body), &closed}
		_, err := (&http.Client{Transport: transport}).Do(r)
		if kindOf(err) != row.kind || !strings.Contains(err.Error(), row.says) || !closed {
			t.Errorf("%s: %v, its body is closed: %t", row.name, err, closed)
		}
	}
}

type base func(*http.Request) (*http.Response, error)

func (b base) RoundTrip(r *http.Request) (*http.Response, error) { return b(r) }

func TestWhatCostsNothingPasses(t *testing.T) {
	t.Parallel()
	var passed []*http.Request
	transport := &Transport{Base: base(func(r *http.Request) (*http.Response, error) {
		passed = append(passed, r)
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
	})}
	all := []*http.Request{post(t, "/v1/messages/count_tokens", "{}"), post(t, "/v1/responses/resp_1/cancel", "")}
	for _, r := range all {
		if _, err := transport.RoundTrip(r); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(passed, all) {
		t.Errorf("%d of %d passed as they are", len(passed), len(all))
	}
}

func TestAStreamOfChatCompletionsIsAskedForItsUsage(t *testing.T) {
	t.Parallel()
	transport := &Transport{Prices: parsed(t, someTable)}
	const other = `{"model":"small","stream":true}`
	for _, row := range []struct{ path, body, want string }{
		{responsesPath, other, other},
		{chatPath, `{"model":"small","stream":true,"user":"<&>"}`, `{"model":"small","stream":true,"stream_options":{"include_usage":true},"user":"<&>"}`},
		{chatPath, `{"model":"small","stream":true,"stream_options":null}`, `{"model":"small","stream":true,"stream_options":{"include_usage":true}}`},
		{chatPath, `{"model":"small","stream":true,"stream_options":{"include_obfuscation":false}}`,
			`{"model":"small","stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true}}`},
		{chatPath, `{"model":"small", "stream":true,"stream_options":{"include_usage":true}}`,
			`{"model":"small", "stream":true,"stream_options":{"include_usage":true}}`},
		{chatPath, `{"model":"small", "stream":false}`, `{"model":"small", "stream":false}`},
	} {
		r := post(t, row.path, row.body)
		format, _ := formatOf(r)
		q, err := transport.read(r, format)
		if err != nil || string(q.Body) != row.want {
			t.Errorf("%s: %s, %v, want %s", row.body, q.Body, err, row.want)
		}
	}
}

package metered

import (
	"bytes"
	"encoding/json"
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
	p, err := prices.Parse([]byte(table))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func post(t testing.TB, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
	messagesPath  = "/v1/messages"
)

func TestTheBoundOfACall(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	for _, row := range []struct {
		name, path, body string
		input, output    int64 // input of 0: the size of the body
	}{
		{"the request's maximum", chatPath, `{"model":"small","max_tokens":7}`, 0, 7},
		{"the newer name", chatPath, `{"model":"small","max_completion_tokens":8}`, 0, 8},
		{"of every choice", chatPath, `{"model":"small","max_tokens":7,"n":3}`, 0, 21},
		{"the model's maximum", chatPath, `{"model":"small"}`, 0, 100},
		{"the model's maximum for every choice", chatPath, `{"model":"small","n":2,"max_tokens":null}`, 0, 200},
		{"responses", responsesPath, `{"model":"open","max_output_tokens":9}`, 0, 9},
		{"messages", messagesPath, `{"model":"open","max_tokens":10}`, 0, 10},
		{"the model's input", chatPath, `{"model":"small","user":"` + long + `"}`, 1000, 100},
		{"another name", chatPath, `{"model":"alias"}`, 0, 100},
		{"an image in place", chatPath, `{"model":"small","max_tokens":1,"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]}`, 1000, 1},
		{"an image by URL", chatPath, `{"model":"small","messages":[{"content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]}`, 1000, 100},
		{"an image by URL, in responses", responsesPath, `{"model":"small","input":[{"content":[{"type":"input_image","image_url":"https://example.com/a.png"}]}]}`, 1000, 100},
		{"a file by id", responsesPath, `{"model":"small","input":[{"content":[{"type":"input_file","file_id":"file-1"}]}]}`, 1000, 100},
		{"an item by id", responsesPath, `{"model":"small","input":[{"type":"item_reference","id":"1"}]}`, 1000, 100},
		{"an answer before", responsesPath, `{"model":"small","previous_response_id":"resp_1"}`, 1000, 100},
		{"a conversation", responsesPath, `{"model":"small","conversation":{"id":"1"}}`, 1000, 100},
		{"a stored prompt", responsesPath, `{"model":"small","prompt":{"id":"1"}}`, 1000, 100},
		{"no conversation", responsesPath, `{"model":"small","conversation":null,"previous_response_id":null}`, 0, 100},
		{"a tool that the provider runs", responsesPath, `{"model":"small","tools":[{"type":"web_search"}]}`, 1000, 100},
		{"tools of the caller", responsesPath, `{"model":"small","tools":[{"type":"function","name":"prompt"},{"type":"custom"}]}`, 1000, 100},
		{"a source by URL", messagesPath, `{"model":"small","max_tokens":1,"messages":[{"content":[{"type":"document","source":{"type":"url","url":"https://example.com"}}]}]}`, 1000, 1},
		{"a source by id", messagesPath, `{"model":"small","max_tokens":1,"messages":[{"content":[{"source":{"type":"file","file_id":"1"}}]}]}`, 1000, 1},
		{"a file in place", responsesPath, `{"model":"small","input":[{"content":[{"type":"input_file","file_data":"data:application/pdf;base64,AA=="}]}]}`, 1000, 100},
		{"a document in place", messagesPath, `{"model":"small","max_tokens":1,"messages":[{"content":[{"type":"tool_result","content":[{"type":"document","source":{"type":"base64","data":"AA=="}}]}]}]}`, 1000, 1},
		{"an image in place, of messages", messagesPath, `{"model":"small","max_tokens":1,"messages":[{"content":[{"type":"image","source":{"type":"base64","data":"AA=="}}]}]}`, 1000, 1},
		{"a link among the arguments of a tool", messagesPath, `{"model":"small","max_tokens":1,"messages":[{"content":[{"type":"tool_use","input":{"image_url":"https://example.com"}}]}]}`, 0, 1},
		{"two maxima", chatPath, `{"model":"small","max_tokens":7,"max_completion_tokens":5}`, 0, 7},
		{"the maximum of another API", chatPath, `{"model":"small","max_output_tokens":5}`, 0, 100},
		{"choices of another API", responsesPath, `{"model":"small","max_output_tokens":5,"n":3}`, 0, 5},
		{"names in other case", chatPath, `{"model":"small","Model":"open","MAX_TOKENS":5,"N":3}`, 0, 100},
		{"a tool of the caller, unnamed", messagesPath, `{"model":"small","max_tokens":1,"tools":[{"name":"a"}]}`, 1000, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			transport := &Transport{Prices: parsed(t, someTable), Models: map[string]string{"alias": "small"}}
			format, _ := formatOf(post(t, row.path, ""))
			q, err := transport.read(post(t, row.path, row.body), format)
			if err != nil {
				t.Fatal(err)
			}
			if row.input == 0 {
				row.input = int64(len(row.body))
			}
			if q.mostInput != row.input || q.mostOutput != row.output {
				t.Errorf("%d and %d, want %d and %d", q.mostInput, q.mostOutput, row.input, row.output)
			}
		})
	}
}

func TestARequestThatAsksToReason(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		body        string
		model, want bool
	}{
		{`{}`, true, true},
		{`{}`, false, false},
		{`{"reasoning":{}}`, true, true},
		{`{"reasoning":{"effort":null,"summary":null}}`, false, false},
		{`{"reasoning":{"effort":"none"}}`, true, false},
		{`{"reasoning":{"effort":"low"}}`, false, true},
		{`{"reasoning":{"enabled":true}}`, false, true},
		{`{"reasoning":{"max_tokens":2000}}`, false, true},
		{`{"reasoning":{"effort":"none","max_tokens":2000}}`, false, true},
		{`{"reasoning":{"effort":"none","type":"enabled"}}`, false, true},
		{`{"thinking":{"type":"disabled"}}`, true, false},
		{`{"thinking":{"type":"disabled"},"thinking_config":{"thinking_budget":100}}`, true, true},
		{`{"thinking":{"type":"disabled"},"reasoning":{"enabled":true}}`, true, true},
	} {
		request, _ := readMembers([]byte(row.body))
		if got := canReason(request, row.model); got != row.want {
			t.Errorf("%s, model %t: %t", row.body, row.model, got)
		}
	}
}

func TestARefusalByValueSaysHowToNeedLess(t *testing.T) {
	t.Parallel()
	transport := &Transport{Prices: parsed(t, someTable)}
	q, err := transport.read(post(t, chatPath, `{"model":"small","max_completion_tokens":5,"max_tokens":7}`), chat{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		err     error
		advises bool
	}{
		{&client.LimitReached{Problem: new(client.Problem), Limit: "max_value_usd"}, true},
		{&client.LimitReached{Problem: new(client.Problem), Limit: "max_committed_usd"}, true},
		{&client.LimitReached{Problem: new(client.Problem), Limit: "max_actions"}, false},
		{&client.AgentLimitReached{Problem: new(client.Problem), Limit: "max_value_usd_per_day"}, true},
		{&client.AgentLimitReached{Problem: new(client.Problem), Limit: "max_actions_per_day"}, false},
		{&client.BudgetExhausted{Problem: new(client.Problem)}, true},
		{io.EOF, false},
	} {
		got := q.explained(row.err, 1)
		if !errors.Is(got, row.err) || strings.HasSuffix(got.Error(), "(7 tokens of output): lower max_tokens, or send less") != row.advises {
			t.Errorf("%v", got)
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

func TestWhatHasNoBoundIsNotSent(t *testing.T) {
	t.Parallel()
	transport := &Transport{Prices: parsed(t, someTable), Session: new(client.Session), Base: unreachable{t}}
	for _, row := range []struct{ name, path, body, kind, says string }{
		{"no maximum", chatPath, `{"model":"open"}`, "unbounded", "max_completion_tokens"},
		{"no maximum, in responses", responsesPath, `{"model":"open"}`, "unbounded", "max_output_tokens"},
		{"content elsewhere", responsesPath, `{"model":"open","max_output_tokens":1,"conversation":"1"}`, "unbounded", "max_input_tokens"},
		{"in the background", responsesPath, `{"model":"small","background":true}`, "unbounded", "background"},
		{"a maximum of 0", chatPath, `{"model":"small","max_tokens":0}`, "unbounded", "integer"},
		{"a negative maximum", chatPath, `{"model":"small","max_tokens":-1}`, "unbounded", "integer"},
		{"a fraction", chatPath, `{"model":"small","max_tokens":1.5}`, "unbounded", "integer"},
		{"choices of 0", chatPath, `{"model":"small","n":0}`, "unbounded", "n must"},
		{"more than can be counted", chatPath, `{"model":"small","max_tokens":9007199254740991,"n":2}`, "unbounded", "priced"},
		{"more than can be priced", chatPath, `{"model":"small","max_tokens":9007199254740991}`, "unbounded", "priced"},
		{"no JSON", chatPath, `hello`, "unbounded", "JSON"},
		{"no object", chatPath, `[]`, "unbounded", "JSON"},
		{"a maximum that is no number", chatPath, `{"model":"small","max_tokens":"many"}`, "unbounded", "JSON"},
		{"an unknown model", chatPath, `{"model":"small-2025-04-14","max_tokens":1}`, "unknown", "small-2025-04-14"},
		{"no model", chatPath, `{"max_tokens":1}`, "unknown", `""`},
		{"usage refused", chatPath, `{"model":"small","stream":true,"stream_options":{"include_usage":false}}`, "usage", "include_usage"},
		{"another path", "/v1/embeddings", `{"model":"small"}`, "unbounded", "/v1/embeddings"},
		{"a batch", "/v1/messages/batches", `{}`, "unbounded", "/v1/messages/batches"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := post(t, row.path, "")
			var closed bool
			r.Body = closing{strings.NewReader(row.body), &closed}
			_, err := (&http.Client{Transport: transport}).Do(r)
			var unbounded *UnboundedCall
			var unknown *prices.UnknownModel
			var missing *UsageMissing
			is := map[string]bool{"unbounded": errors.As(err, &unbounded), "unknown": errors.As(err, &unknown), "usage": errors.As(err, &missing)}
			if !is[row.kind] || !strings.Contains(err.Error(), row.says) || !closed {
				t.Errorf("%v, its body is closed: %t", err, closed)
			}
		})
	}
}

type unreachable struct{ *testing.T }

func (u unreachable) RoundTrip(r *http.Request) (*http.Response, error) {
	u.Errorf("%s was sent", r.URL)
	return nil, errors.New("sent")
}

type recorded struct{ requests *[]*http.Request }

func (s recorded) RoundTrip(r *http.Request) (*http.Response, error) {
	*s.requests = append(*s.requests, r)
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
}

func TestWhatCostsNothingPasses(t *testing.T) {
	t.Parallel()
	var passed []*http.Request
	transport := &Transport{Base: recorded{&passed}}
	models := post(t, "/v1/models", "")
	models.Method = http.MethodGet
	one := post(t, "/v1/responses/resp_1", "")
	one.Method = http.MethodDelete
	all := []*http.Request{models, one, post(t, "/v1/messages/count_tokens", "{}"), post(t, "/v1/responses/resp_1/cancel", "")}
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
	for _, row := range []struct{ body, want string }{
		{`{"model":"small","stream":true,"user":"<&>"}`, `{"model":"small","stream":true,"stream_options":{"include_usage":true},"user":"<&>"}`},
		{`{"model":"small","stream":true,"stream_options":null}`, `{"model":"small","stream":true,"stream_options":{"include_usage":true}}`},
		{`{"model":"small","stream":true,"stream_options":{"include_obfuscation":false}}`,
			`{"model":"small","stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true}}`},
		{`{"model":"small", "stream":true,"stream_options":{"include_usage":true}}`, `{"model":"small", "stream":true,"stream_options":{"include_usage":true}}`},
		{`{"model":"small", "stream":false}`, `{"model":"small", "stream":false}`},
	} {
		q, err := transport.read(post(t, chatPath, row.body), chat{})
		if err != nil || string(q.body) != row.want {
			t.Errorf("%s: %s, %v, want %s", row.body, q.body, err, row.want)
		}
	}
	const other = `{"model":"small","stream":true}`
	if q, err := transport.read(post(t, responsesPath, other), responses{}); err != nil || string(q.body) != other {
		t.Errorf("responses: %s, %v", q.body, err)
	}
}

const someEvents = "\ufeff: comment\r\nevent: a\r\ndata: {\"one\":\"é\"}\r\n\r\ndata:two\ndata: more\n\nid: 1\n\ndata\n\rdata: three\r\r"

// Events are the same wherever the stream is cut.
func TestEventsAreReadInPiecesOfAnySize(t *testing.T) {
	t.Parallel()
	want := []string{`{"one":"é"}`, "two\nmore", "three"}
	for size := 1; size <= len(someEvents); size++ {
		if got := eventsOf([]byte(someEvents), size); !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: %q", size, got)
		}
	}
}

// An event that is too long has no part that is read as another event.
func TestAnEventThatIsTooLongIsPassedOver(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"data:" + strings.Repeat("x", 95) + "\ndata: y\ndata: [DONE]\n\n",
		"data:" + strings.Repeat("x", 200) + "\ndata: [DONE]\n\n",
		": " + strings.Repeat("x", 200) + "\ndata: [DONE]\n\n",
		strings.Repeat("data: 123456\n", 20) + "\n",
	} {
		for size := 1; size <= len(text); size++ {
			var got []string
			e := events{most: 100, dispatch: func(data []byte) { got = append(got, string(data)) }}
			for piece := range slices.Chunk([]byte(text+"data: next\n\n"), size) {
				e.write(piece)
				if kept := len(e.line) + len(e.data); kept > 100 {
					t.Fatalf("%d bytes are kept", kept)
				}
			}
			if !slices.Equal(got, []string{"next"}) {
				t.Fatalf("%.20q in pieces of %d: %q", text, size, got)
			}
		}
	}
}

func eventsOf(text []byte, size int) (got []string) {
	e := events{most: maxBody, dispatch: func(data []byte) { got = append(got, string(data)) }}
	for piece := range slices.Chunk(text, size) {
		e.write(piece)
	}
	return got
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(someEvents), 3)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		whole := eventsOf(text, max(len(text), 1))
		if pieces := eventsOf(text, min(max(size, 1), 1000)); !slices.Equal(pieces, whole) {
			t.Errorf("%q and %q", pieces, whole)
		}
		for _, data := range whole {
			if !bytes.Contains(bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n")), []byte(strings.SplitN(data, "\n", 2)[0])) {
				t.Errorf("%q is not in the text", data)
			}
			for _, format := range formats {
				var p progress
				format.event([]byte(data), &p)
				if p.known && !json.Valid([]byte(data)) {
					t.Errorf("usage of %q", data)
				}
			}
		}
	})
}

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

func TestUsageIsReadExactlyOrNotAtAll(t *testing.T) {
	t.Parallel()
	all := prices.Usage{Input: 7, CachedInput: 3, Output: 4, Reasoning: 1}
	for _, row := range []struct {
		name   string
		format format
		text   string
		want   prices.Usage
		ok     bool
	}{
		{"chat", chat{}, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}}}`, all, true},
		{"chat without details", chat{}, `{"usage":{"prompt_tokens":10,"completion_tokens":5}}`, prices.Usage{Input: 10, Output: 5}, true},
		{"chat with details of null", chat{}, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":null}}}`, prices.Usage{Input: 10, Output: 5}, true},
		{"nothing", chat{}, `{}`, prices.Usage{}, false},
		{"null", chat{}, `{"usage":null}`, prices.Usage{}, false},
		{"no output", chat{}, `{"usage":{"prompt_tokens":10}}`, prices.Usage{}, false},
		{"negative", chat{}, `{"usage":{"prompt_tokens":10,"completion_tokens":-5}}`, prices.Usage{}, false},
		{"a fraction", chat{}, `{"usage":{"prompt_tokens":1.5,"completion_tokens":5}}`, prices.Usage{}, false},
		{"a text", chat{}, `{"usage":{"prompt_tokens":"1","completion_tokens":5}}`, prices.Usage{}, false},
		{"beyond 2^53-1", chat{}, `{"usage":{"prompt_tokens":9007199254740992,"completion_tokens":5}}`, prices.Usage{}, false},
		{"more cached than there is", chat{}, `{"usage":{"prompt_tokens":1,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":2}}}`, prices.Usage{}, false},
		{"more reasoning than there is", chat{}, `{"usage":{"prompt_tokens":1,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":6}}}`, prices.Usage{}, false},
		{"negative cached", chat{}, `{"usage":{"prompt_tokens":1,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-2}}}`, prices.Usage{}, false},
		{"responses", responses{}, `{"usage":{"input_tokens":10,"output_tokens":5,"input_tokens_details":{"cached_tokens":3},"output_tokens_details":{"reasoning_tokens":1}}}`, all, true},
		{"messages", messages{}, `{"usage":{"input_tokens":7,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":5}}`, prices.Usage{Input: 7, CachedInput: 3, CacheCreationInput: 2, Output: 5}, true},
		{"messages without caches", messages{}, `{"usage":{"input_tokens":7,"output_tokens":5,"cache_read_input_tokens":null}}`, prices.Usage{Input: 7, Output: 5}, true},
		{"messages without output", messages{}, `{"usage":{"input_tokens":7}}`, prices.Usage{}, false},
		{"messages, negative cache", messages{}, `{"usage":{"input_tokens":7,"output_tokens":5,"cache_creation_input_tokens":-1}}`, prices.Usage{}, false},
		{"an empty usage", chat{}, `{"usage":{}}`, prices.Usage{}, false},
		{"a usage that is no object", chat{}, `{"usage":[]}`, prices.Usage{}, false},
		{"zeros", chat{}, `{"usage":{"prompt_tokens":0,"completion_tokens":0}}`, prices.Usage{}, false},
		{"no input", chat{}, `{"usage":{"prompt_tokens":0,"completion_tokens":5}}`, prices.Usage{}, false},
		{"no output of a text", chat{}, `{"choices":[{"message":{"role":"assistant","content":"hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":0}}`, prices.Usage{}, false},
		{"no output of a tool call", chat{}, `{"choices":[{"message":{"content":null,"tool_calls":[{}]}}],"usage":{"prompt_tokens":7,"completion_tokens":0}}`, prices.Usage{}, false},
		{"no output of an empty message", chat{}, `{"choices":[{"message":{"role":"assistant","content":"","refusal":null}}],"usage":{"prompt_tokens":7,"completion_tokens":0}}`, prices.Usage{Input: 7}, true},
		{"responses, null", responses{}, `{"usage":null,"output":[{}]}`, prices.Usage{}, false},
		{"responses, an empty usage", responses{}, `{"usage":{}}`, prices.Usage{}, false},
		{"responses, zeros", responses{}, `{"usage":{"input_tokens":0,"output_tokens":0}}`, prices.Usage{}, false},
		{"responses, no output of a text", responses{}, `{"output":[{"type":"message"}],"usage":{"input_tokens":7,"output_tokens":0}}`, prices.Usage{}, false},
		{"responses, no output", responses{}, `{"output":[],"usage":{"input_tokens":7,"output_tokens":0}}`, prices.Usage{Input: 7}, true},
		{"messages, null", messages{}, `{"usage":null}`, prices.Usage{}, false},
		{"messages, an empty usage", messages{}, `{"usage":{}}`, prices.Usage{}, false},
		{"messages, zeros", messages{}, `{"usage":{"input_tokens":0,"output_tokens":0}}`, prices.Usage{}, false},
		{"messages, all input cached", messages{}, `{"usage":{"input_tokens":0,"cache_read_input_tokens":3,"output_tokens":5}}`, prices.Usage{CachedInput: 3, Output: 5}, true},
		{"messages, no output of a text", messages{}, `{"content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":7,"output_tokens":0}}`, prices.Usage{}, false},
		{"messages, no output", messages{}, `{"content":[],"usage":{"input_tokens":7,"output_tokens":0}}`, prices.Usage{Input: 7}, true},
		{"cut", messages{}, `{"usage":{"input_tokens":7,"output_tokens":5}`, prices.Usage{}, false},
	} {
		if got, ok := row.format.whole([]byte(row.text)); ok != row.ok || ok && got.usage != row.want {
			t.Errorf("%s: %+v, %t", row.name, got, ok)
		}
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

// The last message_delta has the counts of the whole message. What it omits stays as message_start said.
func TestCountsThatAMessageOmitsAtItsEndStay(t *testing.T) {
	t.Parallel()
	const start = `{"type":"message_start","message":{"usage":{"input_tokens":7,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":1}}}`
	for _, row := range []struct {
		delta string
		want  prices.Usage
		known bool
	}{
		{`{"output_tokens":5}`, prices.Usage{Input: 7, CachedInput: 3, CacheCreationInput: 2, Output: 5}, true},
		{`{"input_tokens":8,"output_tokens":5}`, prices.Usage{Input: 8, CachedInput: 3, CacheCreationInput: 2, Output: 5}, true},
		{`{"input_tokens":null,"cache_read_input_tokens":4,"output_tokens":5}`, prices.Usage{Input: 7, CachedInput: 4, CacheCreationInput: 2, Output: 5}, true},
		{`{"cache_read_input_tokens":-4,"output_tokens":5}`, prices.Usage{}, false},
		{`{"input_tokens":8}`, prices.Usage{}, false},
	} {
		var p progress
		messages{}.event([]byte(start), &p)
		messages{}.event([]byte(`{"type":"message_delta","usage":`+row.delta+`}`), &p)
		if p.known != row.known || p.known && p.answer.usage != row.want {
			t.Errorf("%s: %+v, %t", row.delta, p.answer.usage, p.known)
		}
	}
}

// A stream whose usage cannot be that of what it has said has none.
func TestAStreamsUsageIsBelievableOrMissing(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		format format
		events []string
		known  bool
		tier   string
	}{
		{"chat", chat{}, []string{`{"service_tier":"priority","choices":[{"delta":{"content":"a"}}]}`, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`}, true, "priority"},
		{"chat, zero tokens of a text", chat{}, []string{`{"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":0}}`}, false, ""},
		{"chat, zeros", chat{}, []string{`{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`}, false, ""},
		{"chat, an empty usage", chat{}, []string{`{"choices":[],"usage":{}}`}, false, ""},
		{"chat, a role alone", chat{}, []string{`{"choices":[{"delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":1,"completion_tokens":0}}`}, true, ""},
		{"responses", responses{}, []string{`{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.completed","response":{"service_tier":"flex","usage":{"input_tokens":1,"output_tokens":1}}}`}, true, "flex"},
		{"responses, zero tokens of a text", responses{}, []string{`{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.completed","response":{"usage":{"input_tokens":1,"output_tokens":0}}}`}, false, ""},
		{"responses, null", responses{}, []string{`{"type":"response.completed","response":{"usage":null}}`}, false, ""},
		{"messages", messages{}, []string{`{"type":"message_start","message":{"usage":{"input_tokens":1,"service_tier":"standard"}}}`, `{"type":"content_block_delta"}`, `{"type":"message_delta","usage":{"output_tokens":1}}`}, true, "standard"},
		{"messages, zero tokens of a text", messages{}, []string{`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`, `{"type":"content_block_delta"}`, `{"type":"message_delta","usage":{"output_tokens":0}}`}, false, ""},
		{"messages, an empty usage", messages{}, []string{`{"type":"message_start","message":{"usage":{}}}`, `{"type":"message_delta","usage":{}}`}, false, ""},
	} {
		var p progress
		for _, event := range row.events {
			row.format.event([]byte(event), &p)
		}
		if p.isKnown() != row.known || p.answer.tier != row.tier {
			t.Errorf("%s: %+v", row.name, p)
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

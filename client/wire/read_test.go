package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"remit/client/prices"
	"remit/money"
)

func table(t testing.TB) *prices.Table {
	t.Helper()
	read, err := prices.ReadFile("testdata/prices.json")
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func read(t testing.TB, f Format, body string, o Options) *Call {
	t.Helper()
	c, err := Read(f, []byte(body), table(t), o)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return c
}

// What can be neither bounded nor priced is refused by the name of the member at fault. sdk/testdata/metering has more requests.
func TestARefusalNamesTheMemberAtFault(t *testing.T) {
	t.Parallel()
	prices := table(t)
	for _, row := range []struct {
		format       Format
		body, member string
	}{
		{ChatCompletions, `[]`, ""},
		{ChatCompletions, `{"model":1}`, "model"},
		{ChatCompletions, `{"model":"unheard-of","max_tokens":1}`, "model"},
		{ChatCompletions, `{"model":"plain","stream":1}`, "stream"},
		{ChatCompletions, `{"model":"plain","max_tokens":0}`, "max_tokens"},
		{ChatCompletions, `{"model":"plain","max_completion_tokens":"9"}`, "max_completion_tokens"},
		{ChatCompletions, `{"model":"plain","n":1.5}`, "n"},
		{ChatCompletions, `{"model":"dear"}`, "max_completion_tokens"},
		{Responses, `{"model":"dear"}`, "max_output_tokens"},
		{Messages, `{"model":"dear"}`, "max_tokens"},
		{ChatCompletions, `{"model":"plain","max_tokens":9007199254740991,"n":2}`, "n"},
		{ChatCompletions, `{"model":"plain","stream":true,"stream_options":1}`, "stream_options"},
		{ChatCompletions, `{"model":"plain","stream":true,"stream_options":{"include_usage":false}}`, "stream_options.include_usage"},
		{ChatCompletions, `{"model":"plain","service_tier":"priority"}`, "service_tier"},
		{ChatCompletions, `{"model":"tiers","service_tier":"scale"}`, "service_tier"},
		{ChatCompletions, `{"model":"plain","models":["plain","dear"]}`, "models"},
		{ChatCompletions, `{"model":"plain","fallbacks":["dear"]}`, "fallbacks"},
		{ChatCompletions, `{"model":"plain","audio":{"voice":"a"}}`, "audio"},
		{ChatCompletions, `{"model":"plain","modalities":["audio"]}`, "modalities"},
		{ChatCompletions, `{"model":"plain","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, "input_audio"},
		{Responses, `{"model":"plain","background":true}`, "background"},
		{Responses, `{"model":"dear","max_output_tokens":9,"previous_response_id":"r"}`, "previous_response_id"},
		{Responses, `{"model":"dear","max_output_tokens":9,"tools":[{"type":"web_search"}]}`, "tools"},
		{Messages, `{"model":"dear","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image"}]}]}`, "messages"},
		{Messages, `{"model":"plain","max_tokens":9,"speed":"fast"}`, "speed"},
		{Messages, `{"model":"plain","max_tokens":9,"context_management":{"edits":[{"type":"compact_20260112"}]}}`, "context_management"},
		{Responses, `{"model":"plain","context_management":[{"type":"compaction","compact_threshold":9}]}`, "context_management"},
		{Messages, `{"model":"plain","max_tokens":9,"inference_geo":"us"}`, "inference_geo"},
		{Messages, `{"model":"plain","max_tokens":9,"cache_control":{"ttl":"1h"}}`, "cache_control.ttl"},
		{Messages, `{"model":"writer","max_tokens":9,"cache_control":{"ttl":"1d"}}`, "cache_control.ttl"},
		{ChatCompletions, `{"model":"plain","model":"dear"}`, "model"},
		{ChatCompletions, `{"model":"plain","mod\u0065l":"dear"}`, "model"},
		{ChatCompletions, `{"model":"plain","max_tokens":9,"max_tokens":1}`, "max_tokens"},
		{ChatCompletions, `{"model":"plain","stream":true,"stream_options":{"include_usage":true,"include_usage":false}}`, "include_usage"},
		{Messages, `{"model":"plain","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a","type":"image"}]}]}`, "type"},
		{Messages, `{"model":"plain","max_tokens":9,"thinking":{"budget_tokens":1,"budget_tokens":2},"a":[{},[1,{"b":1}],{"b":1}]}`, "budget_tokens"},
	} {
		_, err := Read(row.format, []byte(row.body), prices, Options{})
		if err == nil || Member(err) != row.member {
			t.Errorf("%s: %v, at fault %q", row.body, err, Member(err))
		}
	}
	if _, err := Read(Messages, []byte(`{"model":"plain","max_tokens":9,"context_management":{"edits":[{"type":"clear_thinking_20251015"}]},"a":[{"b":1},{"b":1,"c":{"b":1}}]}`), prices, Options{}); err != nil {
		t.Errorf("one name in several objects, and no compaction: %v", err)
	}
	for _, name := range []string{"N", "n\\u0000", "ma\u017f_tokens", "n\\ud800", ""} {
		body := []byte(`{"model":"plain","max_tokens":9,"` + name + `":1}`)
		_, err := Read(Messages, body, prices, Options{PlainNames: true})
		if _, free := Objects(Messages, body); err == nil || free == nil || Member(err) != Member(free) {
			t.Errorf("%q: %v, %v", name, err, free)
		}
	}
	if member := Member(errors.New("other")); member != "" {
		t.Error(member)
	}
}

// Every caller behind one key of a provider can read what that keeps, and what it runs can cost more than tokens.
func TestWhatLivesAtTheProviderOrRunsThereIsNamed(t *testing.T) {
	t.Parallel()
	responses := func(more string) string { return `{"model":"plain","max_output_tokens":9,` + more + `}` }
	input := func(item string) string { return responses(`"input":[` + item + `]`) }
	message := func(part string) string {
		return `{"model":"plain","max_tokens":9,"messages":[{"role":"user","content":[` + part + `]}]}`
	}
	for _, row := range []struct {
		format          Format
		body            string
		objects, hosted []string
	}{
		{Responses, responses(`"input":"a","store":true,"conversation":null`), nil, nil},
		{Responses, responses(`"previous_response_id":"r","conversation":"c"`), []string{"previous_response_id", "conversation"}, nil},
		{Responses, responses(`"prompt":{"id":"p"}`), []string{"prompt"}, nil},
		{Messages, `{"model":"plain","max_tokens":9,"container":"c"}`, []string{"container"}, nil},
		{Responses, input(`{"type":"item_reference","id":"i"}`), []string{"item_reference"}, nil},
		{Responses, input(`{"id":"i"}`), []string{"id"}, nil},
		{Responses, input(`{"type":"reasoning","id":"i","summary":[]}`), []string{"reasoning"}, nil},
		{Responses, input(`{"type":"reasoning","id":"i","summary":[],"encrypted_content":"e"}`), nil, nil},
		{Responses, input(`{"role":"user","content":[{"type":"input_image","file_id":"f"}]}`), []string{"file_id"}, nil},
		{Responses, input(`{"role":"user","content":[{"type":"input_image","image_url":"https://example.com"}]}`), nil, nil},
		{ChatCompletions, message(`{"type":"file","file":{"file_id":"f"}}`), []string{"file_id"}, nil},
		{ChatCompletions, message(`{"type":"file","file":{"file_data":"data:"}}`), nil, nil},
		{ChatCompletions, `{"model":"plain","messages":[{"role":"assistant","audio":{"id":"a"}}]}`, []string{"audio"}, nil},
		{Messages, message(`{"type":"document","source":{"type":"file","file_id":"f"}}`), []string{"file_id"}, nil},
		{Messages, message(`{"type":"container_upload","file_id":"f"}`), []string{"file_id"}, nil},
		{Messages, message(`{"type":"tool_result","content":[{"type":"image","source":{"type":"file","file_id":"f"}}]}`), []string{"file_id"}, nil},
		{Messages, message(`{"type":"image","source":{"type":"base64","data":"AA=="}}`), nil, nil},
		{Messages, message(`{"type":"tool_use","id":"t","name":"n","input":{"file_id":"f","type":"hologram"}}`), nil, nil},
		{Messages, message(`{"type":"hologram"}`), []string{"hologram"}, nil},
		{Responses, responses(`"tools":[{"type":"file_search","vector_store_ids":["v"]}]`), []string{"vector_store_ids"}, []string{"file_search"}},
		{Responses, responses(`"tools":[{"type":"code_interpreter","container":"c"}]`), []string{"container"}, []string{"code_interpreter"}},
		{Responses, responses(`"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`), nil, []string{"code_interpreter"}},
		{Messages, `{"model":"plain","max_tokens":9,"tools":[{"type":"web_search_20250305","name":"s"},{"type":"bash_20250124","name":"b"},{"name":"mine"}]}`, nil, []string{"web_search_20250305"}},
		{Responses, responses(`"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"a"},{"type":"custom","name":"b"}]}]`), nil, nil},
		{Responses, responses(`"tools":[{"type":"namespace","tools":[{"type":"file_search","vector_store_ids":["v"]}]}]`), []string{"vector_store_ids"}, []string{"file_search"}},
		{Messages, `{"model":"plain","max_tokens":9,"mcp_servers":[{"url":"u"}]}`, nil, []string{"mcp_servers"}},
		{ChatCompletions, `{"model":"plain","web_search_options":{},"plugins":[]}`, nil, []string{"web_search_options", "plugins"}},
		{ChatCompletions, `{"model":"plain","search_parameters":{"mode":"auto"}}`, nil, []string{"search_parameters"}},
		{Messages, message(`{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"file","file_id":"f"}}]}}`), []string{"file_id"}, nil},
		{Responses, responses(`"tools":[{"type":"image_generation","input_image_mask":{"file_id":"f"}}]`), []string{"file_id"}, []string{"image_generation"}},
		{Responses, responses(`"tools":[{"type":"function","name":"a","parameters":{"properties":{"file_id":"f"}}}]`), nil, nil},
	} {
		c := read(t, row.format, row.body, Options{})
		if !slices.Equal(c.Objects, row.objects) || !slices.Equal(c.Hosted, row.hosted) {
			t.Errorf("%s: %q and %q, want %q and %q", row.body, c.Objects, c.Hosted, row.objects, row.hosted)
		}
		if by := c.HostedBy; by != "tools" && !slices.Contains(append(row.hosted, ""), by) || (by == "") != (row.hosted == nil) {
			t.Errorf("%s: %q is asked for by %q", row.body, c.Hosted, by)
		}
		if objects, err := Objects(row.format, []byte(row.body)); err != nil || !slices.Equal(objects, row.objects) {
			t.Errorf("%s, without a price: %q, %v", row.body, objects, err)
		}
	}
}

func TestWhatARequestRefersToIsReadOfNothingAmbiguous(t *testing.T) {
	t.Parallel()
	for body, member := range map[string]string{`[]`: "", `{"input":`: "", `{"conversation":"c","conversation":null}`: "conversation"} {
		if objects, err := Objects(Responses, []byte(body)); err == nil || Member(err) != member {
			t.Errorf("%s: %q, %v", body, objects, err)
		}
	}
}

// A model reads texts, not their JSON. Of what is written in JSON for it, the shortest form counts.
func TestThePromptIsBoundedByTheBytesOfItsTexts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, body string
		spared     int // bytes of the body that no model reads
	}{
		{"nothing", `"messages":[{"role":"user","content":"é, \u2028"}]`, 3},
		{"escapes", `"messages":[{"role":"user","content":"\u4e16\"\n\\"}]`, 3 + 1 + 1 + 1},
		{"two of UTF-16", `"messages":[{"role":"user","content":"\ud83e\udd89"}]`, 8},
		{"half of two", `"messages":[{"role":"user","content":"\ud83e"}]`, 3},
		{"spaces", "\"messages\": [ {\"role\":\t\"user\" } ]", 4},
		{"spaces elsewhere count", `"metadata":  {"a":  "\u4e16"}`, 0},
		{"a system prompt", `"system":[{"type":"text","text":"\n"}],"instructions":"\n","input":"\n"`, 3},
		{"tools count as they came", `"tools":[{"name":"a","description":"\n\u4e16"}]`, -toolPrompt},
		{"the text of arguments", `"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":\"\\n\"}"}}]}]`, 5},
		{"an object of arguments is JSON for the model too", `"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"a":"\n\"\\\u0001\u4e16"}}]}]`, 3},
		{"numbers and values", `"messages":[{"role":"user","content":null,"a":[true,false,1.50,[],{}]}]`, 0},
		{"a text that is none in UTF-8 counts no less", "\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]", -2},
	} {
		body := `{"model":"dear","max_tokens":9,` + row.body + `}`
		if c := read(t, Messages, body, Options{}); c.MostInput != int64(len(body)-row.spared) {
			t.Errorf("%s: %d of %d bytes, want %d", row.name, c.MostInput, len(body), len(body)-row.spared)
		}
	}
}

// Whatever a request says, it counts no fewer tokens than its texts have bytes, and no more than the body has.
func FuzzPrompt(f *testing.F) {
	f.Add("a\n\"é\x00", true)
	prices := table(f)
	f.Fuzz(func(t *testing.T, text string, ascii bool) {
		written, _ := json.Marshal(text) // with escapes of HTML
		if ascii {
			written = []byte(strings.ReplaceAll(string(written), "é", `\u00e9`))
		}
		var read string
		if json.Unmarshal(written, &read) != nil {
			return
		}
		body := `{"model":"dear","max_tokens":1,"messages":[{"role":"user","content":` + string(written) + `}]}`
		c, err := Read(ChatCompletions, []byte(body), prices, Options{})
		if err != nil || c.MostInput < int64(len(read)) || c.MostInput > int64(len(body)) {
			t.Fatalf("%q: %+v, %v", body, c, err)
		}
	})
}

// A name is found twice wherever it stands, and a text that looks like one is none.
func FuzzDuplicate(f *testing.F) {
	for _, seed := range []string{`{"a":1,"a":2}`, `{"a":{"b":[{"c":"\"},{\"c\":1"}]}}`, `[{"a":1},{"a":"a"}]`, `{"a\u0062":1,"ab":2}`, `{"a":[],"b":{},"a":[1,2]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			return
		}
		if got, want := duplicate([]byte(text)), firstTwice(json.NewDecoder(strings.NewReader(text))); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	})
}

// firstTwice returns the first name that an object of the next value has twice.
func firstTwice(d *json.Decoder) string {
	token, _ := d.Token()
	names := map[any]bool{}
	for token == json.Delim('{') || token == json.Delim('[') {
		if !d.More() {
			_, _ = d.Token()
			return ""
		}
		if token == json.Delim('{') {
			name, _ := d.Token()
			if names[name] {
				return name.(string)
			}
			names[name] = true
		}
		if found := firstTwice(d); found != "" {
			return found
		}
	}
	return ""
}

func TestEmbeddingsAreBoundedByAllTheirTexts(t *testing.T) {
	t.Parallel()
	body := `{"model":"embed","input":["` + strings.Repeat("x", 40) + `","` + strings.Repeat("y", 40) + `"]}`
	c := read(t, Embeddings, body, Options{})
	if cost, err := c.Worst(); err != nil || c.MostInput != int64(len(body)) || c.MostOutput != 0 || cost != 12 {
		t.Errorf("%+v, %s, %v", c, cost, err)
	}
	if output, ok := c.Fit(11, 0); ok || output != 0 {
		t.Errorf("it fits with %d", output)
	}
}

// An answer of embeddings may be long: of what it carries nothing is kept.
func TestALongAnswerOfEmbeddingsIsMetered(t *testing.T) {
	t.Parallel()
	m := read(t, Embeddings, `{"model":"embed","input":["a"]}`, Options{}).Meter(nil)
	m.Next([]byte(`{"object":"list","data":[{"a":["]\"",[]],"usage":{"prompt_tokens":1},"embedding":[0`))
	piece := []byte(strings.Repeat(",0.123456789", 1<<15))
	for range 10 {
		m.Next(piece)
	}
	m.Next([]byte(`]}],"model":"embed","usage":{"prompt_tokens":15}}`))
	m.End(true)
	const kept = `{"object":"list","data":[],"model":"embed","usage":{"prompt_tokens":15}}`
	if cost, known := m.Cost(); cost != 2 || !known || string(m.text) != kept || cap(m.text) > 1000 {
		t.Errorf("%s, %t, kept %s of %d", cost, known, m.text, cap(m.text))
	}
}

// Input is held first; what is left bounds the output of all answers. Prices of plain: 2 and 8 micro-dollars.
func TestACallIsFittedToWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name         string
		format       Format
		body         string // without its end, which brings it to 100 bytes
		left, least  int64
		output       int64
		ok           bool
		sends, holds string // members that are sent, and the hold in USD
	}{
		{"it fits as it is", ChatCompletions, `{"model":"plain","max_tokens":50`, 600, 16, 50, true, `"max_tokens":50`, "0.0006"},
		{"what is left", ChatCompletions, `{"model":"plain","max_tokens":50`, 599, 16, 49, true, `"max_tokens":49`, "0.000592"},
		{"the least", ChatCompletions, `{"model":"plain","max_tokens":50`, 200 + 8*16, 16, 16, true, `"max_tokens":16`, "0.000328"},
		{"less than the least", ChatCompletions, `{"model":"plain","max_tokens":50`, 200 + 8*16 - 1, 16, 0, false, `"max_tokens":50`, "0.0006"},
		{"less than the input", ChatCompletions, `{"model":"plain","max_tokens":50`, 199, 0, 0, false, `"max_tokens":50`, "0.0006"},
		{"nothing", ChatCompletions, `{"model":"plain","max_tokens":50`, 0, 0, 0, false, `"max_tokens":50`, "0.0006"},
		{"a limit below the least", ChatCompletions, `{"model":"plain","max_tokens":5`, 240, 16, 5, true, `"max_tokens":5`, "0.00024"},
		{"a limit below the least that does not fit", ChatCompletions, `{"model":"plain","max_tokens":5`, 239, 16, 0, false, `"max_tokens":5`, "0.00024"},
		{"no limit: the model's is lowered", ChatCompletions, `{"model":"plain"`, 600, 16, 50, true, `"max_completion_tokens":50`, "0.0006"},
		{"no limit, in responses", Responses, `{"model":"plain"`, 600, 16, 50, true, `"max_output_tokens":50`, "0.0006"},
		{"a limit of null", Responses, `{"model":"plain","max_output_tokens":null`, 600, 16, 50, true, `"max_output_tokens":50`, "0.0006"},
		{"both limits", ChatCompletions, `{"model":"plain","max_tokens":60,"max_completion_tokens":20`, 500, 16, 37, true, `"max_completion_tokens":20,"max_tokens":37`, "0.000496"},
		{"every answer", ChatCompletions, `{"model":"plain","max_tokens":50,"n":3`, 200 + 8*3*20 + 23, 16, 20, true, `"max_tokens":20`, "0.00068"},
		{"thinking and the least", Messages, `{"model":"plain","max_tokens":50,"thinking":{"budget_tokens":20}`, 200 + 8*36, 16, 36, true, `"max_tokens":36`, "0.000488"},
		{"not less than thinking and the least", Messages, `{"model":"plain","max_tokens":50,"thinking":{"budget_tokens":20}`, 200 + 8*36 - 1, 16, 0, false, `"max_tokens":50`, "0.0006"},
		{"thinking beyond the limit", Messages, `{"model":"plain","max_tokens":50,"thinking":{"budget_tokens":90}`, 599, 16, 0, false, `"max_tokens":50`, "0.0006"},
	} {
		body := row.body + `,"user":"` + strings.Repeat("u", 100-len(row.body)-len(`,"user":""}`)) + `"}`
		c := read(t, row.format, body, Options{})
		output, ok := c.Fit(money.MicroUSD(row.left), row.least)
		hold, err := c.Worst()
		if output != row.output || ok != row.ok || err != nil || hold.String() != row.holds || !strings.Contains(string(c.Body), row.sends) {
			t.Errorf("%s: %d, %t, %s, %v, %s", row.name, output, ok, hold, err, c.Body)
		}
		if again, err := Read(row.format, c.Body, table(t), Options{}); err != nil || again.MostOutput != c.MostOutput {
			t.Errorf("%s: what is sent is read as %+v, %v", row.name, again, err)
		}
	}
}

// Some servers heed one name of the limit only.
func TestTheLimitIsSentUnderTheNameThatTheProviderHeeds(t *testing.T) {
	t.Parallel()
	o := Options{OutputLimit: "max_tokens"}
	for _, row := range []struct{ body, want string }{
		{`{"model":"plain","max_completion_tokens":50}`, `{"max_tokens":50,"model":"plain"}`},
		{`{"model":"plain","max_completion_tokens":50,"max_tokens":60}`, `{"max_tokens":60,"model":"plain"}`},
		{`{"model":"plain"}`, `{"model":"plain"}`},
	} {
		if c := read(t, ChatCompletions, row.body, o); string(c.Body) != row.want || c.LimitName != "max_tokens" {
			t.Errorf("%s: %s, %s", row.body, c.Body, c.LimitName)
		}
	}
	c := read(t, ChatCompletions, `{"model":"plain","a":"<&>\u2028"}`, o)
	if _, ok := c.Fit(200, 1); !ok || c.Set("store", false) != nil || !strings.HasPrefix(string(c.Body), `{"a":"<&>\u2028","max_tokens":`) ||
		!strings.HasSuffix(string(c.Body), `,"model":"plain","store":false}`) {
		t.Errorf("%s", c.Body)
	}
}

// A worst case counts what the request can get: a tier that it asks for, a cache of an hour if it asks for one.
func TestTheWorstCaseIsOfWhatTheRequestAsksFor(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		body string
		want int64 // for 1000 tokens of input at least, and 10 of output
	}{
		{`{"model":"writer","max_tokens":10,"previous_response_id":"r"}`, 3750 + 150},
		{`{"model":"writer","max_tokens":10,"previous_response_id":"r","cache_control":{"type":"ephemeral","ttl":"1h"}}`, 6000 + 150},
		{`{"model":"tiers","max_tokens":10,"previous_response_id":"r"}`, 3500 + 140},
		{`{"model":"tiers","max_tokens":10,"previous_response_id":"r","service_tier":"default"}`, 2000 + 80},
		{`{"model":"thinker","max_tokens":10,"previous_response_id":"r"}`, 2000 + 100},
	} {
		if got, err := read(t, Messages, row.body, Options{}).Worst(); err != nil || got != money.MicroUSD(row.want) {
			t.Errorf("%s: %d, %v, want %d", row.body, got, err, row.want)
		}
	}
}

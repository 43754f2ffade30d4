package wire

import (
	"testing"

	"remit/client/prices"
)

// testdata/answers has more of them.
func TestUsageIsReadExactlyOrNotAtAll(t *testing.T) {
	t.Parallel()
	all := prices.Usage{Input: 7, CachedInput: 3, Output: 4, Reasoning: 1}
	for _, row := range []struct {
		name   string
		format Format
		text   string
		want   prices.Usage
		ok     bool
	}{
		{"chat", chat{}, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}}}`, all, true},
		{"chat with details of null", chat{}, `{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":null}}}`, prices.Usage{Input: 10, Output: 5}, true},
		{"null", chat{}, `{"usage":null}`, prices.Usage{}, false},
		{"no output", chat{}, `{"usage":{"prompt_tokens":10}}`, prices.Usage{}, false},
		{"negative", chat{}, `{"usage":{"prompt_tokens":10,"completion_tokens":-5}}`, prices.Usage{}, false},
		{"a fraction", chat{}, `{"usage":{"prompt_tokens":1.5,"completion_tokens":5}}`, prices.Usage{}, false},
		{"a text", chat{}, `{"usage":{"prompt_tokens":"1","completion_tokens":5}}`, prices.Usage{}, false},
		{"beyond 2^53-1", chat{}, `{"usage":{"prompt_tokens":9007199254740992,"completion_tokens":5}}`, prices.Usage{}, false},
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

// A stream whose usage cannot be that of what it has said has none. The last message_delta has the counts of the whole message; what
// it omits stays as message_start said. testdata/answers has more streams.
func TestAStreamsUsageIsBelievableOrMissing(t *testing.T) {
	t.Parallel()
	one, none := prices.Usage{Input: 1, Output: 1}, prices.Usage{}
	ending := func(usage string) []string {
		const start = `{"input_tokens":7,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":1}`
		return []string{`{"type":"message_start","message":{"usage":` + start + `}}`, `{"type":"message_delta","usage":` + usage + `}`}
	}
	for _, row := range []struct {
		name   string
		format Format
		events []string
		want   prices.Usage // none: it is not known
		tier   string
	}{
		{"chat", chat{}, []string{`{"service_tier":"priority","choices":[{"delta":{"content":"a"}}]}`, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`}, one, "priority"},
		{"chat, zero tokens of a text", chat{}, []string{`{"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":0}}`}, none, ""},
		{"chat, zeros", chat{}, []string{`{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`}, none, ""},
		{"chat, an empty usage", chat{}, []string{`{"choices":[],"usage":{}}`}, none, ""},
		{"chat, a role alone", chat{}, []string{`{"choices":[{"delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":1,"completion_tokens":0}}`}, prices.Usage{Input: 1}, ""},
		{"responses, zero tokens of a text", responses{}, []string{`{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.completed","response":{"usage":{"input_tokens":1,"output_tokens":0}}}`}, none, ""},
		{"messages, zero tokens of a text", messages{}, []string{`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`, `{"type":"content_block_delta"}`, `{"type":"message_delta","usage":{"output_tokens":0}}`}, none, ""},
		{"messages, an empty usage", messages{}, []string{`{"type":"message_start","message":{"usage":{}}}`, `{"type":"message_delta","usage":{}}`}, none, ""},
		{"cached input too", messages{}, ending(`{"input_tokens":null,"cache_read_input_tokens":4,"output_tokens":5}`),
			prices.Usage{Input: 7, CachedInput: 4, CacheCreationInput: 2, Output: 5}, ""},
		{"negative cached input", messages{}, ending(`{"cache_read_input_tokens":-4,"output_tokens":5}`), none, ""},
		{"no output at its end", messages{}, ending(`{"input_tokens":8}`), none, ""},
	} {
		var p progress
		for _, event := range row.events {
			row.format.event([]byte(event), &p)
		}
		if p.isKnown() != (row.want != none) || p.isKnown() && p.answer.usage != row.want || p.answer.tier != row.tier {
			t.Errorf("%s: %+v", row.name, p)
		}
	}
}

package wire

import (
	"bytes"
	"encoding/json"
	"strconv"

	"remit/client/prices"
)

// answered is what an answer says that a call used.
type answered struct {
	usage prices.Usage
	tier  string // the service tier; empty: it does not say
	model string // empty: it does not say
	// cacheTimesUnknown: writes to caches are counted as one, whatever their time.
	cacheTimesUnknown bool
}

// isBelievable reports whether an answer with or without output can have used this. Every call has input, and all output has tokens:
// some servers report zeros where they count nothing.
func isBelievable(u prices.Usage, hasOutput bool) bool {
	return u.Prompt() > 0 && (u.Output+u.Reasoning > 0 || !hasOutput)
}

// progress is what a stream has said so far.
type progress struct {
	input      prices.Usage  // what the provider has said about input; Output and Reasoning are 0
	inputKnown bool          // input is known
	counts     messagesUsage // of a stream of messages, the last ones given
	answer     answered
	known      bool // the usage of answer is that of the whole stream
	hasOutput  bool
	ended      bool // the stream has said that it is complete
	failed     bool // the stream has said that it failed
}

// isKnown reports whether the whole stream's usage is known and can be believed.
func (p *progress) isKnown() bool { return p.known && isBelievable(p.answer.usage, p.hasOutput) }

// name keeps the service tier and the model that a part of an answer names.
func (a *answered) name(tier, model any) {
	for _, one := range []struct {
		value any
		of    *string
	}{{tier, &a.tier}, {model, &a.model}} {
		if name, isText := one.value.(string); isText && name != "" {
			*one.of = name
		}
	}
}

// tokens is a count in an answer: an integer from 0 to prices.MaxTokens.
type tokens struct {
	count int64
	given bool
	wrong bool
}

// UnmarshalJSON never fails: a count that is none is wrong.
func (t *tokens) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	n, is := integer(text)
	*t = tokens{n, true, !is || n < 0 || n > prices.MaxTokens}
	return nil
}

func integer(text []byte) (n int64, is bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}

// split takes the part out of the whole: cached tokens out of input, reasoning out of output.
func split(whole, part tokens) (rest, taken int64, ok bool) {
	ok = whole.given && !whole.wrong && !part.wrong && part.count <= whole.count
	return whole.count - part.count, part.count, ok
}

// inDetail is what a usage of OpenAI's formats says about its input.
type inDetail struct {
	Cached  tokens `json:"cached_tokens"`
	Written tokens `json:"cache_write_tokens"` // of routers to providers that charge for it
	Audio   tokens `json:"audio_tokens"`
}

type outDetail struct {
	Reasoning tokens `json:"reasoning_tokens"`
	Audio     tokens `json:"audio_tokens"`
}

// splitAll takes the parts out of input and output. Audio has no price, so a usage with some is not known. A total of more than both
// counts reasoning that the output does not: xAI's, Google's.
func splitAll(input tokens, in inDetail, output tokens, out outDetail, total tokens) (u prices.Usage, ok bool) {
	beside := max(total.count-input.count-output.count, 0)
	if beside > 0 && beside == out.Reasoning.count { // then it is all of it
		output.count, beside = output.count+beside, 0
	}
	var okIn, okWritten, okOut bool
	u.Input, u.CachedInput, okIn = split(input, in.Cached)
	u.Input, u.CacheCreationInput, okWritten = split(tokens{count: u.Input, given: true}, in.Written)
	u.Output, u.Reasoning, okOut = split(output, out.Reasoning)
	hasAudio := in.Audio.count != 0 || in.Audio.wrong || out.Audio.count != 0 || out.Audio.wrong
	u.Reasoning += beside
	return u, okIn && okWritten && okOut && !hasAudio && !total.wrong
}

// isEmptyText reports whether a value in JSON holds nothing.
func isEmptyText(text json.RawMessage) bool {
	if len(text) > 0 && (text[0] == '[' || text[0] == '{') {
		return len(bytes.TrimSpace(text[1:len(text)-1])) == 0
	}
	return len(text) == 0 || string(text) == "null" || string(text) == `""`
}

func isGiven(text json.RawMessage) bool { return len(text) > 0 && string(text) != "null" }

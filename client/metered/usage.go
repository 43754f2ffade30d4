package metered

import (
	"encoding/json"
	"strconv"

	"remit/client/prices"
)

// format reads what a provider's answers say about usage.
type format interface {
	// maxima names the members of a request that bound its output; the first is the one to use.
	maxima() []string
	// answers names the members of a request that say how many answers it gets.
	answers() []string
	// whole reads an answer that is not streamed, and reports whether its usage can be believed.
	whole(text []byte) (answered, bool)
	// event reads the data of one event of a stream.
	event(data []byte, p *progress)
}

// formats are the ends of the paths that are metered.
var formats = map[string]format{"/chat/completions": chat{}, "/responses": responses{}, "/messages": messages{}}

// answered is what an answer says that a call used.
type answered struct {
	usage prices.Usage
	tier  string // the service tier; empty: it does not say
}

// isBelievable reports whether an answer with or without output can have used this. Every call has input, and all output has tokens:
// some servers report zeros where they count nothing.
func isBelievable(u prices.Usage, hasOutput bool) bool {
	return u.Input+u.CachedInput+u.CacheCreationInput > 0 && (u.Output+u.Reasoning > 0 || !hasOutput)
}

// progress is what a stream has said so far.
type progress struct {
	input     prices.Usage // what the provider has said about input; Output and Reasoning are 0
	hears     bool         // input is known
	answer    answered
	known     bool // the usage of answer is that of the whole stream
	hasOutput bool
	ended     bool // the stream has said that it is complete
	failed    bool // the stream has said that it failed
}

// isKnown reports whether the whole stream's usage is known and can be believed.
func (p *progress) isKnown() bool { return p.known && isBelievable(p.answer.usage, p.hasOutput) }

// setTier keeps the service tier that a part of an answer names.
func (a *answered) setTier(tier any) {
	if name, isText := tier.(string); isText && name != "" {
		a.tier = name
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

func split2(input, cached, output, reasoning tokens) (u prices.Usage, ok bool) {
	var okIn, okOut bool
	u.Input, u.CachedInput, okIn = split(input, cached)
	u.Output, u.Reasoning, okOut = split(output, reasoning)
	return u, okIn && okOut
}

// isEmpty reports whether a value in JSON holds nothing.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case members:
		return len(v) == 0
	}
	return false
}

func isGiven(text json.RawMessage) bool { return len(text) > 0 && string(text) != "null" }

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
	// whole reads an answer that is not streamed.
	whole(text []byte) (prices.Usage, bool)
	// event reads the data of one event of a stream.
	event(data []byte, p *progress)
}

// formats are the ends of the paths that are metered.
var formats = map[string]format{"/chat/completions": chat{}, "/responses": responses{}, "/messages": messages{}}

// progress is what a stream has said so far.
type progress struct {
	input  prices.Usage // what the provider has said about input; Output and Reasoning are 0
	hears  bool         // input is known
	usage  prices.Usage
	known  bool // usage is that of the whole stream
	ended  bool // the stream has said that it is complete
	failed bool // the stream has said that it failed
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

// chat is the format of OpenAI's chat completions.
type chat struct{}

type chatUsage struct {
	Prompt     tokens `json:"prompt_tokens"`
	Completion tokens `json:"completion_tokens"`
	InDetail   struct {
		Cached tokens `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	OutDetail struct {
		Reasoning tokens `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func (u *chatUsage) read() (prices.Usage, bool) {
	if u == nil {
		return prices.Usage{}, false
	}
	return split2(u.Prompt, u.InDetail.Cached, u.Completion, u.OutDetail.Reasoning)
}

func split2(input, cached, output, reasoning tokens) (u prices.Usage, ok bool) {
	var okIn, okOut bool
	u.Input, u.CachedInput, okIn = split(input, cached)
	u.Output, u.Reasoning, okOut = split(output, reasoning)
	return u, okIn && okOut
}

func (chat) maxima() []string  { return []string{"max_completion_tokens", "max_tokens"} }
func (chat) answers() []string { return []string{"n", "best_of"} }

func (chat) whole(text []byte) (prices.Usage, bool) {
	var answer struct {
		Usage *chatUsage `json:"usage"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return prices.Usage{}, false
	}
	return answer.Usage.read()
}

func (chat) event(data []byte, p *progress) {
	if string(data) == "[DONE]" {
		p.ended = true
		return
	}
	var chunk struct {
		Usage *chatUsage      `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &chunk) != nil {
		return
	}
	if isGiven(chunk.Error) {
		p.failed = true
	}
	if chunk.Usage != nil { // the last one counts
		p.usage, p.known = chunk.Usage.read()
	}
}

func isGiven(text json.RawMessage) bool { return len(text) > 0 && string(text) != "null" }

// responses is the format of OpenAI's responses.
type responses struct{}

type responsesUsage struct {
	Input    tokens `json:"input_tokens"`
	Output   tokens `json:"output_tokens"`
	InDetail struct {
		Cached tokens `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutDetail struct {
		Reasoning tokens `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (u *responsesUsage) read() (prices.Usage, bool) {
	if u == nil {
		return prices.Usage{}, false
	}
	return split2(u.Input, u.InDetail.Cached, u.Output, u.OutDetail.Reasoning)
}

func (responses) maxima() []string  { return []string{"max_output_tokens"} }
func (responses) answers() []string { return nil }

func (responses) whole(text []byte) (prices.Usage, bool) {
	var answer struct {
		Usage *responsesUsage `json:"usage"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return prices.Usage{}, false
	}
	return answer.Usage.read()
}

func (responses) event(data []byte, p *progress) {
	var event struct {
		Type     string `json:"type"`
		Response struct {
			Usage *responsesUsage `json:"usage"`
		} `json:"response"`
	}
	if json.Unmarshal(data, &event) != nil {
		return
	}
	switch event.Type {
	case "response.completed", "response.incomplete":
		p.usage, p.known = event.Response.Usage.read()
		p.ended = true
	case "response.failed", "response.cancelled":
		p.usage, p.known = event.Response.Usage.read()
		p.ended, p.failed = p.known, !p.known
	case "error":
		p.failed = true
	}
}

// messages is the format of Anthropic's messages.
type messages struct{}

type messagesUsage struct {
	Input         tokens `json:"input_tokens"`
	CacheRead     tokens `json:"cache_read_input_tokens"`
	CacheCreation tokens `json:"cache_creation_input_tokens"`
	Output        tokens `json:"output_tokens"`
}

func (u *messagesUsage) input() (prices.Usage, bool) {
	if u == nil {
		return prices.Usage{}, false
	}
	return prices.Usage{Input: u.Input.count, CachedInput: u.CacheRead.count, CacheCreationInput: u.CacheCreation.count},
		u.Input.given && !u.Input.wrong && !u.CacheRead.wrong && !u.CacheCreation.wrong
}

// changeInput sets the counts that are given. It reports whether all of them are known then.
func (u *messagesUsage) changeInput(of *prices.Usage, isKnown bool) bool {
	for _, one := range []struct {
		given tokens
		count *int64
	}{{u.Input, &of.Input}, {u.CacheRead, &of.CachedInput}, {u.CacheCreation, &of.CacheCreationInput}} {
		if one.given.given {
			*one.count = one.given.count
		}
	}
	return (isKnown || u.Input.given) && !u.Input.wrong && !u.CacheRead.wrong && !u.CacheCreation.wrong
}

func (messages) maxima() []string  { return []string{"max_tokens"} }
func (messages) answers() []string { return nil }

func (messages) whole(text []byte) (prices.Usage, bool) {
	var answer struct {
		Usage *messagesUsage `json:"usage"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return prices.Usage{}, false
	}
	usage, ok := answer.Usage.input()
	if !ok || !answer.Usage.Output.given || answer.Usage.Output.wrong {
		return prices.Usage{}, false
	}
	usage.Output = answer.Usage.Output.count
	return usage, true
}

func (messages) event(data []byte, p *progress) {
	var event struct {
		Type    string `json:"type"`
		Message struct {
			Usage *messagesUsage `json:"usage"`
		} `json:"message"`
		Usage *messagesUsage `json:"usage"`
	}
	if json.Unmarshal(data, &event) != nil {
		return
	}
	switch event.Type {
	case "message_start":
		p.input, p.hears = event.Message.Usage.input()
	case "message_delta": // its counts are of the whole message so far; those that it omits stay
		if event.Usage == nil {
			return
		}
		p.hears = event.Usage.changeInput(&p.input, p.hears)
		p.usage, p.known = p.input, p.hears && event.Usage.Output.given && !event.Usage.Output.wrong
		p.usage.Output = event.Usage.Output.count
	case "message_stop":
		p.ended = true
	case "error":
		p.failed = true
	}
}

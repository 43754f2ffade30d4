package wire

import (
	"encoding/json"
	"slices"

	"remit/client/prices"
)

// messages is the format of Anthropic's messages.
type messages struct{}

type messagesUsage struct {
	Input         tokens `json:"input_tokens"`
	CacheRead     tokens `json:"cache_read_input_tokens"`
	CacheCreation tokens `json:"cache_creation_input_tokens"`
	ByTime        struct {
		Hour tokens `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Output     tokens      `json:"output_tokens"`
	Tier       any         `json:"service_tier"`
	Iterations []iteration `json:"iterations"`
}

type iteration struct {
	Type string `json:"type"`
}

// input returns what the counts say about input, and whether all of it is known.
func (u *messagesUsage) input() (of prices.Usage, isKnown bool) {
	created, hour, ok := split(tokens{count: u.CacheCreation.count, given: true, wrong: u.CacheCreation.wrong}, u.ByTime.Hour)
	of = prices.Usage{Input: u.Input.count, CachedInput: u.CacheRead.count, CacheCreationInput: created, HourCacheCreationInput: hour}
	ok = ok && !slices.ContainsFunc(u.Iterations, iteration.isBeside)
	return of, ok && u.Input.given && !u.Input.wrong && !u.CacheRead.wrong
}

// isBeside reports whether it is in no count of the message.
func (i iteration) isBeside() bool { return i.Type != "message" }

// cacheTimesUnknown reports whether writes to caches are counted without their times.
func (u *messagesUsage) cacheTimesUnknown() bool { return !u.ByTime.Hour.given }

// change takes the counts that are given.
func (u *messagesUsage) change(to *messagesUsage) {
	for _, one := range []struct{ of, to *tokens }{
		{&u.Input, &to.Input}, {&u.CacheRead, &to.CacheRead}, {&u.CacheCreation, &to.CacheCreation}, {&u.ByTime.Hour, &to.ByTime.Hour},
	} {
		if one.to.given {
			*one.of = *one.to
		}
	}
	u.Output = to.Output
	if at := slices.IndexFunc(to.Iterations, iteration.isBeside); at >= 0 { // one says it all, and a stream can have any number
		u.Iterations = []iteration{to.Iterations[at]}
	}
}

func (messages) maxima() []string  { return []string{"max_tokens"} }
func (messages) answers() []string { return nil }

func (messages) whole(text []byte) (a answered, known bool) {
	var answer struct {
		Usage   messagesUsage   `json:"usage"`
		Model   any             `json:"model"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return answered{}, false
	}
	a.name(answer.Usage.Tier, answer.Model)
	known = a.setMessages(&answer.Usage)
	return a, known && isBelievable(a.usage, !isEmptyText(answer.Content))
}

// setMessages sets the usage by these counts, and reports whether it is known.
func (a *answered) setMessages(counts *messagesUsage) (known bool) {
	a.usage, known = counts.input()
	a.usage.Output, a.cacheTimesUnknown = counts.Output.count, counts.cacheTimesUnknown()
	return known && counts.Output.given && !counts.Output.wrong
}

func (messages) event(data []byte, p *progress) {
	var event struct {
		Type    string `json:"type"`
		Message struct {
			Usage messagesUsage `json:"usage"`
			Model any           `json:"model"`
		} `json:"message"`
		Usage *messagesUsage `json:"usage"`
	}
	if json.Unmarshal(data, &event) != nil {
		return
	}
	switch event.Type {
	case "message_start":
		p.counts = event.Message.Usage
		p.input, p.inputKnown = p.counts.input()
		p.answer.cacheTimesUnknown = p.counts.cacheTimesUnknown()
		p.answer.name(p.counts.Tier, event.Message.Model)
	case "content_block_start", "content_block_delta":
		p.hasOutput = true
	case "message_delta": // its counts are of the whole message so far; those that it omits stay
		if event.Usage == nil {
			return
		}
		p.counts.change(event.Usage)
		p.input, p.inputKnown = p.counts.input()
		p.known = p.answer.setMessages(&p.counts)
		p.answer.name(event.Usage.Tier, nil)
	case "message_stop":
		p.ended = true
	case "error":
		p.failed = true
	}
}

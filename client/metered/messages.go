package metered

import (
	"encoding/json"

	"remit/client/prices"
)

// messages is the format of Anthropic's messages.
type messages struct{}

type messagesUsage struct {
	Input         tokens `json:"input_tokens"`
	CacheRead     tokens `json:"cache_read_input_tokens"`
	CacheCreation tokens `json:"cache_creation_input_tokens"`
	Output        tokens `json:"output_tokens"`
	Tier          any    `json:"service_tier"`
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

func (messages) whole(text []byte) (a answered, known bool) {
	var answer struct {
		Usage   *messagesUsage `json:"usage"`
		Content any            `json:"content"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return answered{}, false
	}
	usage, known := answer.Usage.input()
	if !known || !answer.Usage.Output.given || answer.Usage.Output.wrong {
		return answered{}, false
	}
	usage.Output = answer.Usage.Output.count
	a.usage = usage
	a.setTier(answer.Usage.Tier)
	return a, isBelievable(usage, !isEmpty(answer.Content))
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
		if event.Message.Usage != nil {
			p.answer.setTier(event.Message.Usage.Tier)
		}
	case "content_block_start", "content_block_delta":
		p.hasOutput = true
	case "message_delta": // its counts are of the whole message so far; those that it omits stay
		if event.Usage == nil {
			return
		}
		p.hears = event.Usage.changeInput(&p.input, p.hears)
		p.answer.usage, p.known = p.input, p.hears && event.Usage.Output.given && !event.Usage.Output.wrong
		p.answer.usage.Output = event.Usage.Output.count
		p.answer.setTier(event.Usage.Tier)
	case "message_stop":
		p.ended = true
	case "error":
		p.failed = true
	}
}

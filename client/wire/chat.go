package wire

import (
	"bytes"
	"encoding/json"

	"remit/client/prices"
)

// chat is the format of OpenAI's chat completions.
type chat struct{}

type chatUsage struct {
	Prompt     tokens    `json:"prompt_tokens"`
	Completion tokens    `json:"completion_tokens"`
	Total      tokens    `json:"total_tokens"`
	InDetail   inDetail  `json:"prompt_tokens_details"`
	OutDetail  outDetail `json:"completion_tokens_details"`
}

func (u *chatUsage) read() (prices.Usage, bool) {
	if u == nil {
		return prices.Usage{}, false
	}
	return splitAll(u.Prompt, u.InDetail, u.Completion, u.OutDetail, u.Total)
}

func (chat) maxima() []string  { return []string{"max_completion_tokens", "max_tokens"} }
func (chat) answers() []string { return []string{"n", "best_of"} }

func (chat) whole(text []byte) (a answered, known bool) {
	var answer struct {
		Usage   *chatUsage      `json:"usage"`
		Tier    any             `json:"service_tier"`
		Model   any             `json:"model"`
		Choices json.RawMessage `json:"choices"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return answered{}, false
	}
	a.name(answer.Tier, answer.Model)
	a.usage, known = answer.Usage.read()
	return a, known && isBelievable(a.usage, choicesHaveOutput(answer.Choices))
}

// choicesHaveOutput reports whether a message or a delta of choices has anything but its role. It reads no more of them: their
// logprobs can be a hundred times as long, and take as much again in memory once they are read.
func choicesHaveOutput(choices json.RawMessage) bool {
	var list []struct {
		Message map[string]json.RawMessage `json:"message"`
		Delta   map[string]json.RawMessage `json:"delta"`
	}
	if len(choices) > 0 && json.Unmarshal(choices, &list) != nil {
		return true
	}
	for _, choice := range list {
		for _, of := range []map[string]json.RawMessage{choice.Message, choice.Delta} {
			for name, value := range of {
				if name != "role" && !isEmptyText(value) {
					return true
				}
			}
		}
	}
	return false
}

func (chat) event(data []byte, p *progress) {
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		p.ended = true
		return
	}
	var chunk struct {
		Usage   *chatUsage      `json:"usage"`
		Error   json.RawMessage `json:"error"`
		Tier    any             `json:"service_tier"`
		Model   any             `json:"model"`
		Choices json.RawMessage `json:"choices"`
	}
	if json.Unmarshal(data, &chunk) != nil {
		return
	}
	if isGiven(chunk.Error) {
		p.failed = true
	}
	p.answer.name(chunk.Tier, chunk.Model)
	p.hasOutput = p.hasOutput || choicesHaveOutput(chunk.Choices)
	if chunk.Usage != nil { // the last one counts
		p.answer.usage, p.known = chunk.Usage.read()
	}
}

package wire

import (
	"encoding/json"
	"strings"

	"remit/client/prices"
)

// responses is the format of OpenAI's responses.
type responses struct{}

type responsesUsage struct {
	Input     tokens    `json:"input_tokens"`
	Output    tokens    `json:"output_tokens"`
	Total     tokens    `json:"total_tokens"`
	InDetail  inDetail  `json:"input_tokens_details"`
	OutDetail outDetail `json:"output_tokens_details"`
}

func (u *responsesUsage) read() (prices.Usage, bool) {
	if u == nil {
		return prices.Usage{}, false
	}
	return splitAll(u.Input, u.InDetail, u.Output, u.OutDetail, u.Total)
}

func (responses) maxima() []string  { return []string{"max_output_tokens"} }
func (responses) answers() []string { return nil }

// response is an answer, or the part of an event that is one.
type response struct {
	Usage  *responsesUsage `json:"usage"`
	Tier   any             `json:"service_tier"`
	Model  any             `json:"model"`
	Output json.RawMessage `json:"output"`
}

// readTo sets what the response says, and returns whether that is its usage.
func (r *response) readTo(a *answered) (known bool) {
	a.name(r.Tier, r.Model)
	a.usage, known = r.Usage.read()
	return known
}

func (responses) whole(text []byte) (a answered, known bool) {
	var answer response
	if json.Unmarshal(text, &answer) != nil {
		return answered{}, false
	}
	known = answer.readTo(&a)
	return a, known && isBelievable(a.usage, !isEmptyText(answer.Output))
}

func (responses) event(data []byte, p *progress) {
	var event struct {
		Type     string   `json:"type"`
		Response response `json:"response"`
	}
	if json.Unmarshal(data, &event) != nil {
		return
	}
	p.known = event.Response.readTo(&p.answer)
	p.hasOutput = p.hasOutput || strings.HasSuffix(event.Type, ".delta") || !isEmptyText(event.Response.Output)
	switch event.Type {
	case "response.completed", "response.incomplete":
		p.ended = true
	case "response.failed", "response.cancelled":
		p.ended, p.failed = p.isKnown(), !p.isKnown()
	case "error":
		p.failed = true
	}
}

package metered

import (
	"encoding/json"
	"strings"

	"remit/client/prices"
)

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

// response is an answer, or the part of an event that is one.
type response struct {
	Usage  *responsesUsage `json:"usage"`
	Tier   any             `json:"service_tier"`
	Output any             `json:"output"`
}

func (r *response) read() (a answered, known bool) {
	a.setTier(r.Tier)
	a.usage, known = r.Usage.read()
	return a, known
}

func (responses) whole(text []byte) (answered, bool) {
	var answer response
	if json.Unmarshal(text, &answer) != nil {
		return answered{}, false
	}
	a, known := answer.read()
	return a, known && isBelievable(a.usage, !isEmpty(answer.Output))
}

func (responses) event(data []byte, p *progress) {
	var event struct {
		Type     string   `json:"type"`
		Response response `json:"response"`
	}
	if json.Unmarshal(data, &event) != nil {
		return
	}
	p.hasOutput = p.hasOutput || strings.HasSuffix(event.Type, ".delta") || !isEmpty(event.Response.Output)
	switch event.Type {
	case "response.completed", "response.incomplete":
		p.answer, p.known = event.Response.read()
		p.ended = true
	case "response.failed", "response.cancelled":
		p.answer, p.known = event.Response.read()
		p.ended, p.failed = p.isKnown(), !p.isKnown()
	case "error":
		p.failed = true
	}
}

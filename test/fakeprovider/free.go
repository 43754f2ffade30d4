package fakeprovider

import (
	"encoding/json"
	"net/http"
	"slices"
)

// What costs nothing.
const (
	modelsPath      = "/v1/models"
	countPath       = "/v1/messages/count_tokens"
	inputTokensPath = "/v1/responses/input_tokens"
)

// isFree reports whether a request costs nothing.
func isFree(r *http.Request) bool {
	return r.URL.Path == modelsPath && r.Method == http.MethodGet ||
		slices.Contains([]string{countPath, inputTokensPath}, r.URL.Path) && r.Method == http.MethodPost
}

// serveFree answers what costs nothing: for OpenAI's clients and for Anthropic's.
func (p *Provider) serveFree(w http.ResponseWriter, r *http.Request) {
	answer := any(object{"object": "list", "has_more": false, "data": []object{{
		"id": "plain", "object": "model", "owned_by": "fake", "created": 1700000000,
		"type": "model", "display_name": "Plain", "created_at": "2023-11-14T22:13:20Z",
	}}})
	if r.URL.Path != modelsPath {
		c, problem := p.readCall(r)
		if problem != "" {
			refuse(w, formats[messagesPath], http.StatusBadRequest, problem)
			return
		}
		answer = object{"object": "response.input_tokens", "input_tokens": 1 + c.random.Int64N(c.size)}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // fails only when the client is gone
}

// escapes returns how many bytes of a JSON text only write its strings.
func escapes(text []byte) (spared int64) {
	for len(text) > 0 {
		if text[0] != '"' {
			text = text[1:]
			continue
		}
		end := 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		written := text[:min(end+1, len(text))]
		var read string
		if json.Unmarshal(written, &read) == nil {
			spared += int64(len(written) - len(`""`) - len(read))
		}
		text = text[len(written):]
	}
	return spared
}

package wire

import (
	"encoding/json"

	"remit/client/prices"
)

// embeddings is the format of OpenAI's embeddings. They are never streamed and have no output.
type embeddings struct{}

func (embeddings) maxima() []string  { return nil }
func (embeddings) answers() []string { return nil }

func (embeddings) whole(text []byte) (a answered, known bool) {
	var answer struct {
		Usage struct {
			Prompt tokens `json:"prompt_tokens"`
		} `json:"usage"`
		Model any `json:"model"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return answered{}, false
	}
	a.name(nil, answer.Model)
	a.usage = prices.Usage{Input: answer.Usage.Prompt.count}
	return a, answer.Usage.Prompt.given && !answer.Usage.Prompt.wrong && isBelievable(a.usage, false)
}

func (embeddings) event([]byte, *progress) {}

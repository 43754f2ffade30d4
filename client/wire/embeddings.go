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

// skim drops what the arrays of a JSON text hold. An answer with thousands of embeddings has a hundred megabytes of that, and nothing
// there counts.
type skim struct {
	arrays    int // that are open
	inText    bool
	isEscaped bool // the next character
}

// next appends what stays of the text that comes.
func (s *skim) next(to, text []byte) []byte {
	for _, c := range text {
		within := s.arrays > 0
		switch {
		case s.isEscaped:
			s.isEscaped = false
		case s.inText:
			s.isEscaped, s.inText = c == '\\', c != '"'
		case c == '"':
			s.inText = true
		case c == '[':
			s.arrays++
		case c == ']':
			s.arrays--
		}
		if !within || s.arrays == 0 {
			to = append(to, c)
		}
	}
	return to
}

func (embeddings) event([]byte, *progress) {}

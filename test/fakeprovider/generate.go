package fakeprovider

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
)

const (
	defaultOutput = 64  // tokens at most, when the request does not say
	mostOutput    = 200 // tokens, so that calls stay small
	mostReasoning = 16
)

// request has the members of all three formats that matter here.
type request struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Store               *bool  `json:"store"`
	N                   *int64 `json:"n"`
	MaxTokens           *int64 `json:"max_tokens"`
	MaxCompletionTokens *int64 `json:"max_completion_tokens"`
	MaxOutputTokens     *int64 `json:"max_output_tokens"`
	Input               any    `json:"input"`
	Tools               []struct {
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"` // of chat completions
	} `json:"tools"`
}

// problem says what is wrong with a request to the path.
func (r request) problem(path string) string {
	for _, count := range []*int64{r.N, r.MaxTokens, r.MaxCompletionTokens, r.MaxOutputTokens} {
		if count != nil && *count < 1 {
			return "counts must be positive"
		}
	}
	switch {
	case r.Model == "":
		return "model is missing"
	case path == messagesPath && r.MaxTokens == nil:
		return "max_tokens is missing"
	}
	return ""
}

// maxOutput returns how many tokens a choice may have.
func (r request) maxOutput(path string) int64 {
	given := cmp.Or(r.MaxCompletionTokens, r.MaxTokens)
	if path == responsesPath {
		given = r.MaxOutputTokens
	}
	if given == nil {
		return defaultOutput
	}
	return *given
}

// manner returns how many bytes say how to answer. They are no input of the model, and a gateway may add them.
func (r request) manner() (bytes int64) {
	if r.StreamOptions != nil {
		bytes += int64(len(`,"stream_options":{"include_usage":true}`))
	}
	if r.Store != nil {
		bytes += int64(len(`,"store":false`))
	}
	for name, limit := range map[string]*int64{
		"max_tokens": r.MaxTokens, "max_completion_tokens": r.MaxCompletionTokens, "max_output_tokens": r.MaxOutputTokens,
	} {
		if limit != nil {
			bytes += int64(len(fmt.Sprintf(`,%q:%d`, name, *limit)))
		}
	}
	return bytes
}

func (r request) choices(path string) int64 {
	if r.N == nil || path != chatPath {
		return 1
	}
	return *r.N
}

// call is a request and how to answer it.
type call struct {
	path      string
	request   request
	answering string // the model
	size      int64  // of what is counted of the body, in bytes
	fake      behaviour
	tool      toolCall // that the answer is, if fake.tools
	random    *rand.Rand
}

// toolCall is a call of a tool; arguments "": made of the tokens of the answer.
type toolCall struct{ name, arguments string }

// offered returns the first of a request's tools for which there are arguments that fit its output.
func (r request) offered(path string, arguments map[string]string) (one toolCall, has bool) {
	for _, tool := range r.Tools {
		name := cmp.Or(tool.Function.Name, tool.Name)
		if text, known := arguments[name]; known && int64(len(text)) <= r.maxOutput(path) {
			return toolCall{name, text}, true
		}
	}
	return toolCall{}, false
}

// generated is what the provider generates for a call: usage, and the text of each token of each choice but reasoning.
type generated struct {
	usage   Usage
	choices [][]string
	full    bool // a choice has as many tokens as it may have
}

var words = []string{"a", " budget", "é", " world", "世", "界", " 🦉", "\n", " naïve", " of", " tokens", ",", "ß", " .", " \u2028"}

func generate(c call) generated {
	var g generated
	if c.path == embeddingsPath {
		g.usage.Input = 1 + c.random.Int64N(c.size)
		return g
	}
	if c.tool.arguments != "" { // a token for each character
		tokens := strings.Split(c.tool.arguments, "")
		g.choices, g.usage.Output, g.usage.Input = [][]string{tokens}, int64(len(tokens)), 1+c.random.Int64N(c.size)
		return g
	}
	most := min(c.request.maxOutput(c.path), mostOutput)
	for i := range c.request.choices(c.path) {
		count := 1 + c.random.Int64N(most)
		g.full = g.full || count == most
		if c.fake.reasoning && i == 0 && count > 1 {
			g.usage.Reasoning = 1 + c.random.Int64N(min(count-1, mostReasoning))
		}
		visible := count
		if i == 0 {
			visible -= g.usage.Reasoning
		}
		tokens := make([]string, visible)
		for j := range tokens {
			tokens[j] = words[c.random.IntN(len(words))]
		}
		g.usage.Output += visible
		g.choices = append(g.choices, tokens)
	}
	g.usage.Input = 1 + c.random.Int64N(c.size)
	if c.fake.cached {
		g.usage.CachedInput = c.random.Int64N(g.usage.Input)
		g.usage.Input -= g.usage.CachedInput
		if c.path == messagesPath {
			g.usage.CacheCreationInput = c.random.Int64N(g.usage.Input)
			g.usage.Input -= g.usage.CacheCreationInput
		}
		if c.fake.forHour && g.usage.CacheCreationInput > 0 {
			g.usage.HourCacheCreationInput = 1 + c.random.Int64N(g.usage.CacheCreationInput)
			g.usage.CacheCreationInput -= g.usage.HourCacheCreationInput
		}
	}
	if c.path == messagesPath { // which counts reasoning as output
		g.usage.Output, g.usage.Reasoning = g.usage.Output+g.usage.Reasoning, 0
	}
	return g
}

// output is how many tokens of output an answer says it has.
func (c call) output(g generated) int64 {
	if c.fake.usage == "negative" {
		return -g.usage.total()
	}
	return g.usage.total()
}

func (u Usage) prompt() int64 { return u.Input + u.CachedInput + u.created() }

func (u Usage) created() int64 { return u.CacheCreationInput + u.HourCacheCreationInput }

func (u Usage) total() int64 { return u.Output + u.Reasoning }

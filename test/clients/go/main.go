// Command clients makes calls with the Go packages of OpenAI and Anthropic, as they are: each gets the gateway's address and a session key,
// and nothing else of Remit. What it reads and writes is what clients.mjs does. It is a module of its own, so that the service needs none
// of these packages.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3"
)

// use is a case: what a client is to do.
type use struct {
	Client   string `json:"client"`
	BaseURL  string `json:"base_url"`
	Key      string `json:"key"`
	Model    string `json:"model"`
	Streamed bool   `json:"streamed"`
	Tool     bool   `json:"tool"`
}

// outcome is what it came to.
type outcome struct {
	Text    string   `json:"text"`
	Queries []string `json:"queries,omitempty"` // of calls of the tool
	Status  int      `json:"status,omitempty"`
	Message string   `json:"message,omitempty"`
}

// lookup is the tool that is called.
type lookup struct{ queries []string }

type input struct {
	Query string `json:"query"`
}

func (l *lookup) run(of input) string {
	l.queries = append(l.queries, of.Query)
	return "found"
}

// call calls the tool with arguments in JSON.
func (l *lookup) call(arguments string) (string, error) {
	var of input
	err := json.Unmarshal([]byte(arguments), &of)
	return l.run(of), err
}

const (
	question    = "What is left of the budget? 🦉"
	description = "Looks up what is asked"
	most        = 64 // tokens of an answer, where a client must say
)

var parameters = map[string]any{
	"type": "object", "properties": map[string]any{"query": map[string]any{"type": "string"}}, "required": []string{"query"}, "additionalProperties": false,
}

var clients = map[string]func(context.Context, use, *lookup) (string, error){
	"openai-go, chat": chat, "openai-go, responses": respond, "anthropic-sdk-go": message,
}

func main() {
	var uses []use
	if err := json.NewDecoder(os.Stdin).Decode(&uses); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	outcomes := make([]outcome, len(uses))
	var all sync.WaitGroup
	for i, u := range uses {
		all.Go(func() { outcomes[i] = outcomeOf(context.Background(), u) })
	}
	all.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(outcomes); err != nil {
		os.Exit(1)
	}
}

func outcomeOf(ctx context.Context, u use) outcome {
	tool := new(lookup)
	text, err := clients[u.Client](ctx, u, tool)
	if err == nil {
		return outcome{Text: text, Queries: tool.queries}
	}
	o := outcome{Message: err.Error()}
	if of, is := errors.AsType[*openai.Error](err); is {
		o.Status, o.Message = of.StatusCode, of.Message
	}
	if of, is := errors.AsType[*anthropic.Error](err); is {
		o.Status = of.StatusCode
	}
	return o
}

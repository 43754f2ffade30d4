package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"remit/client"
	"remit/client/prices"
	"remit/money"
)

const longestToolWait = 60 // seconds

// mcpTools answer a model about the budget of one session.
type mcpTools struct {
	session *client.Session
	prices  *prices.Table // nil: none
}

// newMCPServer returns an MCP server with these tools.
func newMCPServer(session *client.Session, table *prices.Table) *mcp.Server {
	p := &mcpTools{session, table}
	server := mcp.NewServer(&mcp.Implementation{Name: "remit", Title: "Remit", Version: "1"}, &mcp.ServerOptions{
		Instructions: "Your work has a budget. Call get_budget before you plan, and request_more when what is left does not suffice.",
	})
	add(server, "get_budget", "What is left of your budget: actions, US dollars and time.", noArguments, p.budget)
	if table != nil {
		add(server, "estimate", "The most that a call of a language model can cost, and whether it fits into what is left.", estimateArguments, p.estimate)
	}
	add(server, "request_more", "Asks the owner of the budget for more, and waits for the answer. To wait again for an earlier "+
		"request, give its request_id alone.", requestArguments, p.requestMore)
	return server
}

const (
	noArguments       = `{"type": "object", "additionalProperties": false}`
	estimateArguments = `{"type": "object", "additionalProperties": false, "required": ["model", "input_tokens", "max_output_tokens"], "properties": {
		"model": {"type": "string", "description": "The name in the price table."},
		"input_tokens": {"type": "integer", "minimum": 0},
		"max_output_tokens": {"type": "integer", "minimum": 0}}}`
	requestArguments = `{"type": "object", "additionalProperties": false, "properties": {
		"add_actions": {"type": "integer", "minimum": 0, "description": "How many more actions you need."},
		"add_value_usd": {"type": "number", "minimum": 0, "description": "How many more US dollars you need, with up to 6 decimals."},
		"reason": {"type": "string", "minLength": 1, "maxLength": 500, "description": "For the person who decides: what for, and what is done already."},
		"request_id": {"type": "string", "description": "An earlier request, to wait for its answer instead of asking."},
		"wait_seconds": {"type": "integer", "minimum": 0, "maximum": 60, "description": "How long to wait for the answer; the default is 60."}}}`
)

// add adds a tool. Its arguments are decoded here, and not by the SDK, which reads amounts into floats.
func add[A any](server *mcp.Server, name, description, arguments string, answer func(context.Context, A) (any, error)) {
	tool := &mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(arguments)}
	server.AddTool(tool, func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var given A
		err := decodeArguments(request.Params.Arguments, &given)
		if err == nil {
			var result any
			if result, err = answer(ctx, given); err == nil {
				return structured(result)
			}
		}
		var refused mcp.CallToolResult
		refused.SetError(err)
		return &refused, nil
	})
}

func decodeArguments(text json.RawMessage, into any) error {
	if len(text) == 0 {
		return nil
	}
	read := json.NewDecoder(bytes.NewReader(text))
	read.DisallowUnknownFields()
	if err := read.Decode(into); err != nil {
		return fmt.Errorf("the arguments are wrong: %w", err)
	}
	return nil
}

// structured returns a result as text for the model and as structured content.
func structured(result any) (*mcp.CallToolResult, error) {
	text, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text)}, nil
}

// budgetLeft is the answer of get_budget.
type budgetLeft struct {
	Status            string          `json:"status"`
	MaxActions        int64           `json:"max_actions"`
	ActionCount       int64           `json:"action_count"`
	RemainingActions  int64           `json:"remaining_actions"`
	MaxValue          money.MicroUSD  `json:"max_value_usd"`
	ValueUsed         money.MicroUSD  `json:"value_used_usd"`
	ValueHeld         money.MicroUSD  `json:"value_held_usd"`
	RemainingValue    money.MicroUSD  `json:"remaining_value_usd"`
	MaxValuePerAction *money.MicroUSD `json:"max_value_usd_per_action,omitzero"`
	ExpiresAt         time.Time       `json:"expires_at"`
	RemainingSeconds  int64           `json:"remaining_seconds"`
	Suspended         bool            `json:"suspended,omitzero"`
}

func (p *mcpTools) budget(ctx context.Context, _ struct{}) (any, error) { return p.left(ctx) }

func (p *mcpTools) left(ctx context.Context) (budgetLeft, error) {
	s, err := p.session.Get(ctx)
	if err != nil {
		return budgetLeft{}, explainToModel(err)
	}
	return budgetLeft{
		Status: s.Status, MaxActions: s.MaxActions, ActionCount: s.ActionCount, MaxValue: s.MaxValue, ValueUsed: s.ValueUsed, ValueHeld: s.ValueHeld,
		RemainingActions:  max(s.MaxActions-s.ActionCount-s.ActionsDelegated, 0),
		RemainingValue:    max(s.MaxValue-s.ValueUsed-s.ValueHeld-s.ValueDelegated, 0),
		MaxValuePerAction: s.MaxValuePerAction,
		ExpiresAt:         s.ExpiresAt, RemainingSeconds: max(int64(time.Until(s.ExpiresAt).Seconds()), 0), Suspended: !s.SuspendedAt.IsZero(),
	}, nil
}

type estimateOf struct {
	Model           string `json:"model"`
	InputTokens     *int64 `json:"input_tokens"`
	MaxOutputTokens *int64 `json:"max_output_tokens"`
}

// estimated is the answer of estimate.
type estimated struct {
	WorstCase        money.MicroUSD `json:"worst_case_usd"`
	Fits             bool           `json:"fits"`
	RemainingActions int64          `json:"remaining_actions"`
	RemainingValue   money.MicroUSD `json:"remaining_value_usd"`
}

func (p *mcpTools) estimate(ctx context.Context, of estimateOf) (any, error) {
	if of.Model == "" || of.InputTokens == nil || of.MaxOutputTokens == nil {
		return nil, errors.New("give model, input_tokens and max_output_tokens")
	}
	worst, err := p.prices.Worst(of.Model, *of.InputTokens, *of.MaxOutputTokens)
	if err != nil {
		return nil, err
	}
	left, err := p.left(ctx)
	if err != nil {
		return nil, err
	}
	fits := left.Status == "active" && !left.Suspended && left.RemainingActions > 0 && worst <= left.RemainingValue &&
		(left.MaxValuePerAction == nil || worst <= *left.MaxValuePerAction)
	return estimated{worst, fits, left.RemainingActions, left.RemainingValue}, nil
}

type moreOf struct {
	AddActions  int64          `json:"add_actions"`
	AddValue    money.MicroUSD `json:"add_value_usd"`
	Reason      string         `json:"reason"`
	RequestID   string         `json:"request_id"`
	WaitSeconds *int64         `json:"wait_seconds"`
}

func (m moreOf) wait() (time.Duration, error) {
	if m.WaitSeconds == nil {
		return longestToolWait * time.Second, nil
	}
	if *m.WaitSeconds < 0 || *m.WaitSeconds > longestToolWait {
		return 0, fmt.Errorf("wait_seconds must be from 0 to %d", longestToolWait)
	}
	return time.Duration(*m.WaitSeconds) * time.Second, nil
}

func (p *mcpTools) requestMore(ctx context.Context, of moreOf) (any, error) {
	wait, err := of.wait()
	if err != nil {
		return nil, err
	}
	if of.RequestID == "" {
		r, err := p.session.RequestMore(ctx, client.MoreParams{AddActions: of.AddActions, AddValue: of.AddValue, Reason: of.Reason})
		if err != nil {
			return nil, explainToModel(err)
		}
		of.RequestID = r.ID
	} else if of.AddActions != 0 || of.AddValue != 0 || of.Reason != "" {
		return nil, errors.New("give request_id without add_actions, add_value_usd and reason")
	}
	return p.await(ctx, of.RequestID, wait)
}

// await waits for the answer to a request, which may still be pending afterwards.
func (p *mcpTools) await(ctx context.Context, id string, wait time.Duration) (any, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	r, err := p.session.AwaitRequest(waiting, id)
	if err != nil && waiting.Err() != nil {
		r, err = p.session.GetRequest(ctx, id)
	}
	if err != nil {
		return nil, explainToModel(err)
	}
	return r, nil
}

package remitmcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"remit/client"
)

const (
	askForMore = "Ask for more with request_more of remit's own MCP server, or ask the owner of this session."
	notRun     = "The tool did not run, and nothing was charged."
)

// refusal is why a tool did not run, for a model and for a program.
type refusal struct {
	why  string
	data map[string]any
}

// refuse returns a tool's error for a refusal by the budget, and any other error as it is.
func refuse(ctx context.Context, cause error, call *mcp.CallToolRequest, price Price, next mcp.MethodHandler) (mcp.Result, error) {
	r := refusalOf(cause, call.Params.Name, price)
	if r == nil {
		return nil, cause
	}
	var result mcp.CallToolResult
	result.SetError(cause) // which other middleware may read
	result.Content = []mcp.Content{&mcp.TextContent{Text: "Refused: " + r.why + " " + notRun}}
	if !hasOwnShape(ctx, call, next) {
		result.StructuredContent = r.data
	}
	return &result, nil
}

func refusalOf(cause error, tool string, price Price) *refusal {
	var (
		unpriced *UnpricedTool
		limit    *client.LimitReached
		agent    *client.AgentLimitReached
		scope    *client.InsufficientScope
		inactive *client.SessionNotActive
		problem  *client.Problem
	)
	switch {
	case errors.As(cause, &unpriced):
		return &refusal{cause.Error() + ".", map[string]any{"code": "unpriced_tool", "tool": tool}}
	case errors.As(cause, &limit):
		return limitReached(limit, tool, price)
	case errors.As(cause, &agent):
		return agentLimitReached(agent, price)
	case errors.As(cause, &scope):
		why := fmt.Sprintf("it needs the scope %s, which this agent or session lacks. Do without %s, or ask the owner of this session.", scope.RequiredScope, tool)
		return &refusal{why, map[string]any{"code": scope.Code, "required_scope": scope.RequiredScope}}
	case errors.As(cause, &inactive):
		return &refusal{fmt.Sprintf("the session is %s. Stop, and ask for a new session.", inactive.SessionStatus),
			map[string]any{"code": inactive.Code, "session_status": inactive.SessionStatus}}
	case errors.As(cause, new(*client.AgentSuspended)), errors.As(cause, new(*client.SessionSuspended)):
		errors.As(cause, &problem)
		return &refusal{"it is suspended. Stop until it is resumed.", map[string]any{"code": problem.Code}}
	case errors.Is(cause, client.ErrUnavailable), errors.Is(cause, client.ErrOutcomeUnknown), errors.Is(cause, client.ErrRateLimited):
		return unavailable(cause)
	case errors.As(cause, &problem):
		return &refusal{"the budget cannot be used. Tell the operator of this server.", map[string]any{"code": cmp.Or(problem.Code, "refused")}}
	}
	return nil
}

func limitReached(e *client.LimitReached, tool string, price Price) *refusal {
	until := e.ExpiresAt.UTC().Format(time.RFC3339)
	return &refusal{
		fmt.Sprintf("%s does not allow it: %s costs 1 action and %s USD; %d of %d actions and %s of %s USD are left until %s. %s",
			e.Limit, tool, price.Value, e.RemainingActions, e.MaxActions, e.RemainingValue, e.MaxValue, until, askForMore),
		map[string]any{
			"code": e.Code, "limit": e.Limit, "remaining_actions": e.RemainingActions, "remaining_value_usd": e.RemainingValue,
			"required_value_usd": price.Value, "session_expires_at": until,
		},
	}
}

func agentLimitReached(e *client.AgentLimitReached, price Price) *refusal {
	data, until := map[string]any{"code": e.Code, "limit": e.Limit, "required_value_usd": price.Value}, ""
	if !e.ResetsAt.IsZero() {
		at := e.ResetsAt.UTC().Format(time.RFC3339)
		data["resets_at"], until = at, " It resets at "+at+"."
	}
	return &refusal{fmt.Sprintf("the agent's limit %s is reached.%s Go on then, or ask the operator of this agent.", e.Limit, until), data}
}

func unavailable(cause error) *refusal {
	data := map[string]any{"code": "unavailable"}
	var problem *client.Problem
	if errors.As(cause, &problem) {
		data["code"] = cmp.Or(problem.Code, "unavailable")
		if problem.RetryAfter > 0 {
			data["retry_after_seconds"] = problem.RetryAfter.Seconds()
		}
	}
	return &refusal{"the budget cannot be checked now. Try again later.", data}
}

// hasOwnShape reports whether a tool says what its structured content looks like. Clients refuse any other, in errors too.
func hasOwnShape(ctx context.Context, call *mcp.CallToolRequest, next mcp.MethodHandler) bool {
	for cursor := ""; ; {
		request := &mcp.ListToolsRequest{Session: call.Session, Params: &mcp.ListToolsParams{Cursor: cursor}, Extra: call.Extra}
		listed, err := next(ctx, methodListTools, request)
		page, is := listed.(*mcp.ListToolsResult)
		if err != nil || !is {
			return true
		}
		for _, tool := range page.Tools {
			if tool.Name == call.Params.Name {
				return tool.OutputSchema != nil
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return false
		}
	}
}

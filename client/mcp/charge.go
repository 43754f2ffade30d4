// Package remitmcp charges for the tools of an MCP server that is made with the Model Context Protocol's Go SDK.
//
//	remitmcp.Charge(server, remitmcp.Options{
//		Session: session,
//		Tools:   map[string]remitmcp.Price{"search": {Value: money.USD / 100}},
//	})
//
// Each call holds its price before the tool runs, and is committed when the tool has succeeded. A call that fails is rolled back. A
// refusal is the result of the tool, with a text that a model can act on: which limit was met, what is left, and who can give more.
package remitmcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"remit/client"
	"remit/money"
)

const (
	holdTime   = 10 * time.Minute // after which the hold of a call expires if this process ends
	beginTime  = 30 * time.Second // for which a hold is tried
	settleTime = 10 * time.Second
)

// Price is what a call of a tool costs, and who may make it.
type Price struct {
	Value          money.MicroUSD // of each call; 0 counts the action alone
	Scope          string         // which the agent's token and the session must have; empty: none
	ActionType     string         // of the holds, 1 to 200 characters; empty: the tool's name
	ChargeFailures bool           // whether calls that fail are charged too
}

// Options say who pays for which tools.
type Options struct {
	// Session pays for all calls, unless SessionOf returns the session of each, such as by the token in its Extra.
	Session   *client.Session
	SessionOf func(context.Context, *mcp.CallToolRequest) (*client.Session, error)

	// Tools has the price of each tool. A tool without one does not run.
	Tools map[string]Price

	// Log gets settlements that failed: their result is delivered, and their hold expires. nil: slog.Default.
	Log *slog.Logger
}

// UnpricedTool refuses a call of a tool without a price. The tool did not run, and nothing was charged.
type UnpricedTool struct{ Tool string }

func (e *UnpricedTool) Error() string {
	return fmt.Sprintf("the tool %q has no price: the operator of this server must set one; a price of 0 counts the call alone", e.Tool)
}

// Charge has each tool call of a server authorised and charged. Call it before the server's first session. It panics if a price is
// negative, or if no session pays. What it commits is final, whatever scopes the agent has: the tool has run.
func Charge(server *mcp.Server, o Options) {
	if (o.Session == nil) == (o.SessionOf == nil) {
		panic("remitmcp: set either Session or SessionOf")
	}
	for name, price := range o.Tools {
		if price.Value < 0 {
			panic(fmt.Sprintf("remitmcp: the price of the tool %q is negative", name))
		}
	}
	if o.SessionOf == nil {
		o.SessionOf = func(context.Context, *mcp.CallToolRequest) (*client.Session, error) { return o.Session, nil }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Tools = maps.Clone(o.Tools) // calls read it at once
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
			call, is := request.(*mcp.CallToolRequest)
			switch {
			case !is && method != methodCallTool:
				return next(ctx, method, request)
			case !is || call.Params == nil: // other middleware may have made it
				return nil, fmt.Errorf("remitmcp: a call of a tool that is a %T cannot be charged, so the tool did not run", request)
			}
			return o.charged(ctx, call, next)
		}
	})
}

// charged makes one call, for which it holds and settles the price.
func (o *Options) charged(ctx context.Context, call *mcp.CallToolRequest, next mcp.MethodHandler) (mcp.Result, error) {
	price, known := o.Tools[call.Params.Name]
	if !known {
		return refuse(ctx, &UnpricedTool{call.Params.Name}, call, price, next)
	}
	tx, err := o.hold(ctx, call, price)
	if err != nil {
		return refuse(ctx, err, call, price, next)
	}
	succeeded := false
	defer func() { o.settle(ctx, tx, succeeded || price.ChargeFailures, "the tool failed") }() // also when it panics
	result, err := next(ctx, methodCallTool, call)
	tool, is := result.(*mcp.CallToolResult)
	succeeded = err == nil && is && !tool.IsError && !tool.NeedsInput()
	return result, err
}

const (
	methodCallTool  = "tools/call"
	methodListTools = "tools/list"
)

// hold holds the price. When the call is cancelled meanwhile, the hold that comes to be is rolled back.
func (o *Options) hold(ctx context.Context, call *mcp.CallToolRequest, price Price) (*client.Transaction, error) {
	session, err := o.SessionOf(ctx, call)
	if err != nil {
		return nil, err
	}
	if session == nil {
		return nil, errors.New("remitmcp: SessionOf returned no session")
	}
	if price.Scope != "" { // a transaction checks no scope
		if _, err := session.DryRunCharge(ctx, client.Charge{Scope: price.Scope}); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginTime)
	defer cancel()
	tx, err := session.Begin(detached, client.TransactionParams{
		ActionType: cmp.Or(price.ActionType, call.Params.Name), Value: price.Value, ExpiresIn: holdTime, Irreversible: true,
		Metadata: map[string]string{"tool": call.Params.Name},
	})
	if err == nil && ctx.Err() != nil {
		o.settle(ctx, tx, false, "cancelled")
		return nil, ctx.Err()
	}
	return tx, err
}

// settle settles a hold, also when the call's context has ended.
func (o *Options) settle(ctx context.Context, tx *client.Transaction, pays bool, otherwise string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	var err error
	if pays {
		err = tx.Commit(ctx, client.CommitParams{})
	} else {
		err = tx.Rollback(ctx, otherwise)
	}
	if err != nil {
		o.Log.Error("a call of a tool could not be settled; its hold expires", "transaction", tx.ID(), "cause", err)
	}
}

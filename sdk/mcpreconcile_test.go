package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"remit/client"
	remitmcp "remit/client/mcp"
	"remit/money"
	"remit/remittest"
)

type work struct {
	Seed uint64 `json:"seed"`
}

// workshop is an MCP server whose tools count what they did.
type workshop struct {
	remit   *remittest.Remit
	session *client.Session
	agent   *mcp.ClientSession
	prices  map[string]remitmcp.Price

	cancels sync.Map // of callers that hang up when their tool runs, by seed

	mu   sync.Mutex
	due  map[string]int64 // calls to be paid, by tool
	runs map[string]int   // by how the tool ended
}

// newWorkshop returns a workshop whose session pays for so many cents.
func newWorkshop(t *testing.T, value money.MicroUSD) *workshop {
	t.Helper()
	w := &workshop{remit: remittest.New(t), due: map[string]int64{}, runs: map[string]int{}, prices: map[string]remitmcp.Price{
		"cheap": {Value: cent}, "dear": {Value: 7 * cent}, "always": {Value: 3 * cent, ChargeFailures: true}, "free": {},
	}}
	w.session = w.remit.Session(t, client.SessionParams{MaxValue: &value, MaxActions: 1_000_000})
	server := mcp.NewServer(&mcp.Implementation{Name: "workshop", Version: "1"}, nil)
	remitmcp.Charge(server, remitmcp.Options{Session: w.session, Tools: w.prices, Log: slog.New(slog.NewTextHandler(failing{t}, nil))})
	server.AddReceivingMiddleware(recovered)
	for name := range w.prices {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(ctx context.Context, _ *mcp.CallToolRequest, of work) (*mcp.CallToolResult, any, error) {
			return w.run(ctx, name, of.Seed)
		})
	}
	w.agent = connected(t, server)
	return w
}

// recovered answers a tool that panics with an error. The SDK would end the process.
func recovered(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if panicked := recover(); panicked != nil {
				err = fmt.Errorf("panic: %v", panicked)
			}
		}()
		return next(ctx, method, request)
	}
}

type failing struct{ *testing.T }

func (f failing) Write(line []byte) (int, error) {
	f.Errorf("%s", line)
	return len(line), nil
}

// run ends as the seed says.
func (w *workshop) run(ctx context.Context, tool string, seed uint64) (*mcp.CallToolResult, any, error) {
	random := rand.New(rand.NewPCG(seed, 2))
	if cancel, has := w.cancels.Load(seed); has {
		cancel.(context.CancelFunc)()
		<-ctx.Done()
	}
	switch way := random.IntN(10); {
	case way == 0:
		w.count(tool, "panicked", false)
		panic("no tool")
	case way < 3:
		w.count(tool, "failed", false)
		return nil, nil, errors.New("no network")
	case way < 5 && ctx.Err() != nil:
		w.count(tool, "was cancelled", false)
		return nil, nil, ctx.Err()
	}
	w.count(tool, "succeeded", true)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
}

func (w *workshop) count(tool, way string, succeeded bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[way]++
	if succeeded || w.prices[tool].ChargeFailures {
		w.due[tool]++
	}
}

// call makes a call as its number says, and may cancel it. It returns how the caller sees it end.
func (w *workshop) call(t *testing.T, i int) string {
	random := rand.New(rand.NewPCG(uint64(i), 3))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	switch random.IntN(8) {
	case 0:
		defer time.AfterFunc(time.Duration(random.IntN(20_000))*time.Microsecond, cancel).Stop()
	case 1:
		w.cancels.Store(uint64(i), cancel)
	}
	tool := []string{"cheap", "dear", "always", "free"}[random.IntN(4)]
	result, err := w.agent.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: work{uint64(i)}})
	switch {
	case ctx.Err() != nil:
		return "cancelled"
	case err != nil && strings.Contains(err.Error(), "panic"):
		return "panicked"
	case err != nil:
		t.Errorf("call %d: %v", i, err)
		return ""
	case !result.IsError:
		return "succeeded"
	}
	if data, is := result.StructuredContent.(map[string]any); is && data["code"] == "session_limit_reached" {
		return "over the limit"
	}
	return "failed"
}

func reconcileTools(t *testing.T, calls, most int) {
	t.Helper()
	w := newWorkshop(t, cent*money.MicroUSD(calls)) // too little for the last of them
	var mu sync.Mutex
	seen := map[string]int{}
	atOnce(calls, most, func(i int) {
		end := w.call(t, i)
		mu.Lock()
		defer mu.Unlock()
		seen[end]++
	})
	info := w.settled(t)
	w.checkTransactions(t)
	t.Logf("seen %v, run %v, %s of %s used", seen, w.runs, info.ValueUsed, info.MaxValue)
	for _, end := range []string{"succeeded", "failed", "panicked", "cancelled", "over the limit"} {
		if seen[end] == 0 {
			t.Errorf("no call was seen to be %q", end)
		}
	}
	if w.runs["was cancelled"] == 0 {
		t.Error("no tool was cancelled")
	}
}

// settled waits until the totals are what the tools have counted, for a call that was cancelled may still run.
func (w *workshop) settled(t *testing.T) (info client.SessionInfo) {
	t.Helper()
	await(t, "the totals are those of the tools", func() bool {
		info = must(w.session.Get(t.Context()))(t)
		var due money.MicroUSD
		w.mu.Lock()
		defer w.mu.Unlock()
		for tool, calls := range w.due {
			due += w.prices[tool].Value * money.MicroUSD(calls)
		}
		return info.ValueHeld == 0 && info.ValueUsed == due && due <= info.MaxValue
	})
	return info
}

// checkTransactions compares the committed transactions with the calls that the tools have counted.
func (w *workshop) checkTransactions(t *testing.T) {
	t.Helper()
	committed := map[string]int64{}
	transactions, info := atRest(t, w.session, w.remit.Organization.Transactions)
	for _, tx := range transactions {
		if tx.Status == "committed" {
			committed[tx.ActionType]++
		}
		if tx.Overage != 0 || tx.Reversible || tx.Status != "committed" && tx.Status != "rolled_back" || tx.Status == "committed" && tx.Value != w.prices[tx.ActionType].Value {
			t.Errorf("%+v", tx)
		}
	}
	for tool := range w.prices {
		if committed[tool] != w.due[tool] {
			t.Errorf("%s: %d committed, %d are due", tool, committed[tool], w.due[tool])
		}
	}
	if int64(len(transactions)) != info.ActionCount || info.ValueHeld != 0 {
		t.Errorf("%d transactions, the session has %+v", len(transactions), info)
	}
}

// Calls of tools at once, of which some fail, panic, are cancelled or are refused, leave exact totals.
func TestManyCallsOfToolsReconcileWithWhatTheToolsCount(t *testing.T) {
	t.Parallel()
	reconcileTools(t, 300, 50)
}

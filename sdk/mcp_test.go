package sdk

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"remit/client"
	remitmcp "remit/client/mcp"
	"remit/money"
	"remit/remittest"
)

const cent = money.USD / 100

// toolServer is an MCP server whose tools cost 10 cents, and a client of it.
type toolServer struct {
	remit   *remittest.Remit
	session *client.Session
	agent   *mcp.ClientSession
	runs    []string
	cause   error // of the last refusal
}

type shaped struct {
	Found int `json:"found"`
}

func newToolServer(t *testing.T, limits client.SessionParams, change func(*remitmcp.Options)) *toolServer {
	t.Helper()
	s := &toolServer{remit: remittest.New(t)}
	s.session = s.remit.Session(t, limits)
	options := remitmcp.Options{Session: s.session, Log: slog.New(slog.DiscardHandler), Tools: map[string]remitmcp.Price{
		"search": {Value: 10 * cent}, "fail": {Value: 10 * cent}, "break": {Value: 10 * cent, ChargeFailures: true},
		"scoped": {Scope: "admin"}, "free": {ActionType: "tool.free"}, "shaped": {Value: 10 * cent},
	}}
	if change != nil {
		change(&options)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	remitmcp.Charge(server, options)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, request)
			if of, is := result.(*mcp.CallToolResult); is {
				s.cause = of.GetError()
			}
			return result, err
		}
	})
	for _, name := range []string{"search", "fail", "break", "scoped", "free", "unpriced"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			s.runs = append(s.runs, name)
			if name == "fail" || name == "break" {
				return nil, nil, errors.New("no network")
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found"}}}, nil, nil
		})
	}
	mcp.AddTool(server, &mcp.Tool{Name: "shaped"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, shaped, error) {
		return nil, shaped{1}, nil
	})
	s.agent = connected(t, server)
	return s
}

func connected(t *testing.T, server *mcp.Server) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	serving := must(server.Connect(t.Context(), there, nil))(t)
	t.Cleanup(func() { _ = serving.Close() })
	agent := must(mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), here, nil))(t)
	t.Cleanup(func() { _ = agent.Close() })
	return agent
}

func (s *toolServer) call(t *testing.T, tool string) (text string, data map[string]any, isError bool) {
	t.Helper()
	result, err := s.agent.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	for _, content := range result.Content {
		if of, is := content.(*mcp.TextContent); is {
			text += of.Text
		}
	}
	data, _ = result.StructuredContent.(map[string]any)
	return text, data, result.IsError
}

func (s *toolServer) usage(t *testing.T) (actions int64, used, held money.MicroUSD) {
	t.Helper()
	info := must(s.session.Get(t.Context()))(t)
	return info.ActionCount, info.ValueUsed, info.ValueHeld
}

func TestARefusedToolTellsTheModelWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, tool, text, code string
		before                 func(*testing.T, *toolServer)
		change                 func(*remitmcp.Options)
		without                bool // structured content
	}{
		{"a limit", "search", "max_value_usd does not allow it: search costs 1 action and 0.1 USD; 100 of 100 actions and 0.05 of 0.05 USD are left until ", "session_limit_reached", nil, nil, false},
		{"a limit of a tool with its own shape", "shaped", "max_value_usd does not allow it", "", nil, nil, true},
		{"a scope", "scoped", "it needs the scope admin", "insufficient_scope", nil, nil, false},
		{"no price", "unpriced", `the tool "unpriced" has no price`, "unpriced_tool", nil, nil, false},
		{"a session that has ended", "free", "the session is completed. Stop", "session_not_active", func(t *testing.T, s *toolServer) {
			noError(t, s.remit.Organization.EndSession(t.Context(), s.session.ID()))
		}, nil, false},
		{"a suspended session", "free", "it is suspended", "session_suspended", func(t *testing.T, s *toolServer) {
			must(s.remit.Organization.SuspendSession(t.Context(), s.session.ID(), ""))(t)
		}, nil, false},
		{"no service", "free", "the budget cannot be checked now. Try again later.", "unavailable", nil, func(o *remitmcp.Options) {
			o.Session, o.SessionOf = nil, func(context.Context, *mcp.CallToolRequest) (*client.Session, error) {
				return nil, client.ErrUnavailable
			}
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newToolServer(t, client.SessionParams{MaxValue: new(5 * cent), MaxActions: 100}, row.change)
			if row.before != nil {
				row.before(t, s)
			}
			text, data, isError := s.call(t, row.tool)
			if !isError || !strings.HasPrefix(text, "Refused: "+row.text) || !strings.HasSuffix(text, "nothing was charged.") {
				t.Errorf("an error: %t: %s", isError, text)
			}
			if row.without != (data == nil) || !row.without && data["code"] != row.code {
				t.Errorf("it has %v", data)
			}
			if actions, used, held := s.usage(t); actions != 0 || used != 0 || held != 0 || s.runs != nil {
				t.Errorf("%d actions, %s used, %s held; ran %v", actions, used, held, s.runs)
			}
			if unpriced, is := errors.AsType[*remitmcp.UnpricedTool](s.cause); is != (row.code == "unpriced_tool") || is && unpriced.Tool != row.tool || s.cause == nil {
				t.Errorf("its cause is %v", s.cause)
			}
		})
	}
}

func TestEachCallOfAnMCPServerMayHaveItsOwnSession(t *testing.T) {
	t.Parallel()
	var payers []*client.Session
	s := newToolServer(t, client.SessionParams{}, func(o *remitmcp.Options) {
		o.Session, o.SessionOf = nil, func(context.Context, *mcp.CallToolRequest) (*client.Session, error) {
			payer := payers[0]
			payers = payers[1:]
			return payer, nil
		}
	})
	payers = []*client.Session{s.remit.Session(t, client.SessionParams{}), s.session}
	s.call(t, "search")
	if actions, _, _ := s.usage(t); actions != 0 {
		t.Error("the first call charged the other session")
	}
	_, data, isError := s.call(t, "shaped")
	if actions, used, _ := s.usage(t); actions != 1 || used != 10*cent || isError || data["found"] != 1.0 {
		t.Errorf("%d actions, %s used, %v", actions, used, data)
	}
}

func TestAnUnpaidCallDoesNotRun(t *testing.T) {
	t.Parallel()
	s := newToolServer(t, client.SessionParams{}, func(o *remitmcp.Options) {
		o.Session, o.SessionOf = nil, func(context.Context, *mcp.CallToolRequest) (*client.Session, error) { return nil, nil }
	})
	_, err := s.agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: map[string]any{}})
	if err == nil || !strings.Contains(err.Error(), "returned no session") || s.runs != nil {
		t.Errorf("%v; ran %v", err, s.runs)
	}
}

func TestChargeRefusesWrongOptions(t *testing.T) {
	t.Parallel()
	session := new(client.Session)
	for name, options := range map[string]remitmcp.Options{
		"no payer":         {},
		"two pay":          {Session: session, SessionOf: func(context.Context, *mcp.CallToolRequest) (*client.Session, error) { return session, nil }},
		"a negative price": {Session: session, Tools: map[string]remitmcp.Price{"search": {Value: -1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if text, is := recover().(string); !is || !strings.HasPrefix(text, "remitmcp: ") {
					t.Errorf("it panics with %q", text)
				}
			}()
			remitmcp.Charge(mcp.NewServer(&mcp.Implementation{Name: "tools"}, nil), options)
		})
	}
}

// Other middleware may make requests that are no *mcp.CallToolRequest. Their tools do not run, because they cannot be charged.
func TestACallOfAToolThatCannotBeReadDoesNotRun(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*mcp.CallToolRequest) mcp.Request{
		"another type": func(r *mcp.CallToolRequest) mcp.Request {
			return &mcp.ServerRequest[*mcp.CallToolParams]{Session: r.Session, Params: &mcp.CallToolParams{Name: r.Params.Name}}
		},
		"no parameters": func(r *mcp.CallToolRequest) mcp.Request { return &mcp.CallToolRequest{Session: r.Session} },
	} {
		ran := false
		server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
		replace := func(with func(context.Context, mcp.MethodHandler, mcp.Request) (mcp.Result, error)) {
			server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
					if method != "tools/call" {
						return next(ctx, method, request)
					}
					return with(ctx, next, request)
				}
			})
		}
		replace(func(context.Context, mcp.MethodHandler, mcp.Request) (mcp.Result, error) {
			ran = true
			return new(mcp.CallToolResult), nil
		})
		session := remittest.New(t).Session(t, client.SessionParams{})
		remitmcp.Charge(server, remitmcp.Options{Session: session, Tools: map[string]remitmcp.Price{"search": {}}})
		replace(func(ctx context.Context, next mcp.MethodHandler, request mcp.Request) (mcp.Result, error) {
			return next(ctx, "tools/call", change(request.(*mcp.CallToolRequest)))
		})
		_, err := connected(t, server).CallTool(t.Context(), &mcp.CallToolParams{Name: "search"})
		if err == nil || !strings.Contains(err.Error(), "cannot be charged") || ran {
			t.Errorf("%s: it ran: %t, %v", name, ran, err)
		}
	}
}

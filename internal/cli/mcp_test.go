package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const priceTable = `{"small": {"input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6}}`

// model is what the model of an agent has of remit mcp.
type model struct {
	t       *testing.T
	session *mcp.ClientSession
}

// asModel runs remit mcp for a session with these flags.
func (s *terminal) asModel(session string, flags ...string) *model {
	s.t.Helper()
	s.env["REMIT_SESSION"] = session
	command := s.command(append([]string{"mcp"}, flags...)...)
	command.Stdin = nil
	as := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	connected := must(as.Connect(s.t.Context(), &mcp.CommandTransport{Command: command}, nil))(s.t)
	s.t.Cleanup(func() { _ = connected.Close() })
	return &model{s.t, connected}
}

// call calls a tool. It returns what the tool answers as an object, or its error.
func (m *model) call(tool, arguments string) (answer map[string]any, refusal string) {
	m.t.Helper()
	answer, refusal, err := m.try(tool, arguments)
	if err != nil {
		m.t.Fatalf("%s: %v", tool, err)
	}
	return answer, refusal
}

// try is call for goroutines, which may not end the test.
func (m *model) try(tool, arguments string) (answer map[string]any, refusal string, err error) {
	result, err := m.session.CallTool(m.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		return nil, "", err
	}
	text := result.Content[0].(*mcp.TextContent).Text
	if result.IsError {
		return nil, text, nil
	}
	return answer, "", json.Unmarshal([]byte(text), &answer)
}

func TestAModelAsksWhatIsLeftAndWhatACallCanCost(t *testing.T) {
	t.Parallel()
	_, agent, session := actor(t)
	agent.good("charge", session, "--value-usd", "0.25")
	m := agent.asModel(session, "--prices", written(t, priceTable))
	left, _ := m.call("get_budget", `{}`)
	for name, want := range map[string]any{
		"status": "active", "max_actions": 5.0, "action_count": 1.0, "remaining_actions": 4.0,
		"max_value_usd": 1.0, "value_used_usd": 0.25, "value_held_usd": 0.0, "remaining_value_usd": 0.75,
	} {
		wantEqual(t, name, left[name], want)
	}
	for _, row := range []struct {
		arguments string
		worst     float64
		fits      bool
	}{
		{`{"model": "small", "input_tokens": 1000, "max_output_tokens": 100}`, 0.0014, true},
		{`{"model": "small", "input_tokens": 750000, "max_output_tokens": 0}`, 0.75, true},
		{`{"model": "small", "input_tokens": 750001, "max_output_tokens": 0}`, 0.750001, false},
	} {
		if got, refusal := m.call("estimate", row.arguments); got["worst_case_usd"] != row.worst || got["fits"] != row.fits {
			t.Errorf("%s: %v %s", row.arguments, got, refusal)
		}
	}
	agent.good("session", "end", session)
	if got, _ := m.call("estimate", `{"model": "small", "input_tokens": 1, "max_output_tokens": 0}`); got["fits"] != false {
		t.Errorf("a call fits into a session that has ended: %v", got)
	}
}

// A model asks once and waits. A person answers, and the call that waits returns it.
func TestAModelThatWaitsForMoreIsAnswered(t *testing.T) {
	t.Parallel()
	for status, row := range map[string]struct {
		decision []string
		left     float64 // of value, afterwards
	}{
		"approved": {[]string{"approve", "--add-value-usd", "1.5"}, 2.5}, "denied": {[]string{"deny"}, 1},
	} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			organization, agent, session := actor(t)
			m := agent.asModel(session)
			answered := make(chan map[string]any, 1)
			go func() {
				answer, refusal, err := m.try("request_more", `{"add_value_usd": 2.000001, "reason": "12 invoices are left"}`)
				if answer == nil {
					t.Errorf("%q, %v", refusal, err)
				}
				answered <- answer
			}()
			var requests []map[string]any
			await(t, func() string { return "no model asks for more" }, func() bool {
				requests = document[[]map[string]any](organization.good("session", "requests", session, "--status", "pending", "--json"))
				return len(requests) > 0
			})
			request := requests[0]["id"].(string)
			if len(answered) > 0 {
				t.Fatalf("it did not wait: %v", <-answered)
			}
			organization.good(append([]string{"session", row.decision[0], session, request, "--comment", "half"}, row.decision[1:]...)...)
			select {
			case answer := <-answered:
				if answer["id"] != request || answer["status"] != status || answer["comment"] != "half" {
					t.Errorf("%v", answer)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("the model waits on")
			}
			if left, _ := m.call("get_budget", `{}`); left["remaining_value_usd"] != row.left {
				t.Errorf("%v", left)
			}
		})
	}
}

// A model that does not wait gets its answer later, by the id of its request.
func TestAModelAsksForAnAnswerAgain(t *testing.T) {
	t.Parallel()
	organization, agent, session := actor(t)
	m := agent.asModel(session)
	asked, refusal := m.call("request_more", `{"add_value_usd": 2.000001, "add_actions": 3, "reason": "12 invoices are left", "wait_seconds": 0}`)
	if asked["status"] != "pending" || asked["add_value_usd"] != 2.000001 || asked["add_actions"] != 3.0 {
		t.Fatalf("%v %s", asked, refusal)
	}
	id := asked["id"].(string)
	organization.good("session", "approve", session, id, "--add-value-usd", "1.5", "--comment", "half")
	answer, _ := m.call("request_more", `{"request_id": "`+id+`"}`)
	if answer["status"] != "approved" || answer["granted_value_usd"] != 1.5 || answer["comment"] != "half" {
		t.Errorf("%v", answer)
	}
	if left, _ := m.call("get_budget", `{}`); left["max_value_usd"] != 2.5 || left["max_actions"] != 8.0 {
		t.Errorf("%v", left)
	}
}

func TestAModelLearnsWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, agent, session := actor(t)
	m := agent.asModel(session, "--prices", written(t, priceTable))
	for _, row := range []struct{ tool, arguments, want string }{
		{"estimate", `{"model": "large", "input_tokens": 1, "max_output_tokens": 1}`, `large`},
		{"estimate", `{"model": "small"}`, "give model, input_tokens and max_output_tokens"},
		{"estimate", `{"model": "small", "input_tokens": -1, "max_output_tokens": 1}`, "token counts must be"},
		{"estimate", `{"model": "small", "input_tokens": 1.5, "max_output_tokens": 1}`, "input_tokens"},
		{"request_more", `{"reason": "x"}`, "name at least one of add_actions and add_value_usd"},
		{"request_more", `{"add_actions": 1}`, "reason"},
		{"request_more", `{"add_actions": 1, "reason": "x", "wait_seconds": 61}`, "wait_seconds must be from 0 to 60"},
		{"request_more", `{"add_value_usd": 0.0000001, "reason": "x"}`, "decimals"},
		{"request_more", `{"request_id": "5f0c9df4-6c3e-4d0e-9a39-7e0a3f8e6b11", "reason": "x"}`, "give request_id without"},
		{"request_more", `{"request_id": "5f0c9df4-6c3e-4d0e-9a39-7e0a3f8e6b11", "wait_seconds": 0}`, "not_found"},
		{"get_budget", `{"more": 1}`, "more"},
	} {
		if answer, refusal := m.call(row.tool, row.arguments); answer != nil || strings.Count(refusal, row.want) != 1 {
			t.Errorf("%s %s: %v %q, want %s", row.tool, row.arguments, answer, refusal, row.want)
		}
	}
	wantEqual(t, "requests that were made", agent.good("session", "requests", session, "--json").stdout, "[]\n")
}

func TestTheMCPCommandNeedsASessionAndAnAgentAndEndsWithItsInput(t *testing.T) {
	t.Parallel()
	organization, agent, session := actor(t)
	wrong := written(t, `{"small": {"input_cost_per_token": -1e-6}}`)
	for _, row := range []struct {
		as   *terminal
		args []string
		want string
	}{
		{agent, nil, "no session: set REMIT_SESSION"},
		{agent, []string{"--session", session, "--secret", "-"}, "standard input has the protocol"},
		{agent, []string{"--session", session, "--prices", wrong + "-none"}, "-none: no such file"},
		{agent, []string{"--session", session, "--prices", wrong}, ": prices of model \"small\": input_cost_per_token must not be negative"},
		{organization, []string{"--session", session}, "no agent: set REMIT_AGENT"},
	} {
		if r := row.as.run(append([]string{"mcp"}, row.args...)...); r.exit == 0 || !strings.Contains(r.stderr, row.want) || r.stdout != "" {
			t.Errorf("%q: exit %d: %s", row.args, r.exit, r.stderr)
		}
	}
	if r := agent.good("mcp", "--session", session); r.stdout != "" || r.stderr != "" { // standard input is empty
		t.Errorf("it prints %q %q", r.stdout, r.stderr)
	}
}

// The command line of an operator makes the key, and nothing else reaches the model's host.
func TestASessionKeyIsAllThatAModelNeeds(t *testing.T) {
	t.Parallel()
	organization, _, session := actor(t)
	made := organization.object("session", "key", "create", session, "--name", "editor")
	has(t, organization.good("session", "key", "list", session).stdout, `^`+made["id"].(string)+` +editor +`)
	host := newTerminal(t)
	host.env["REMIT_SESSION_KEY"] = "@" + written(t, made["key"].(string))
	if left, refusal := host.asModel("").call("get_budget", `{}`); left["max_actions"] != 5.0 {
		t.Errorf("%v %s", left, refusal)
	}
	has(t, organization.good("session", "key", "delete", session, made["id"].(string)).stdout, `^STATUS +deleted$`)
	if _, refusal := host.asModel("").call("get_budget", `{}`); !strings.Contains(refusal, "invalid_token") {
		t.Errorf("a deleted key: %s", refusal)
	}
	host.env["REMIT_SESSION_KEY"] = "rmsk_not-to-be-told"
	if r := host.run("mcp"); r.exit == 0 || strings.Contains(r.stderr, "not-to-be-told") {
		t.Errorf("exit %d: %s", r.exit, r.stderr)
	}
}

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/money"
	"remit/test/fakeprovider"
	"remit/test/tool"
)

// caller is a client that people use.
type caller struct {
	name     string // by which its program knows it
	protocol string // openai or anthropic
	tools    map[string]string
}

// query is what the provider asks of the tool lookup.
const (
	query  = `{"query":"naïve 🦉 \"budget\""}`
	wanted = `naïve 🦉 "budget"`
)

// packages are the clients of a protocol that one program calls.
func packages(protocol string, names ...string) (all []caller) {
	for _, name := range names {
		all = append(all, caller{name, protocol, map[string]string{"lookup": query}})
	}
	return all
}

var nodeClients = slices.Concat(
	packages("openai", "openai, chat", "openai, responses", "ai, @ai-sdk/openai, chat", "ai, @ai-sdk/openai, responses",
		"@langchain/openai, chat", "@langchain/openai, responses", "@openai/agents, chat", "@openai/agents, responses"),
	packages("anthropic", "@anthropic-ai/sdk", "ai, @ai-sdk/anthropic"),
)

// scenario is what happens to a client.
type scenario struct {
	name     string
	streamed bool
	tool     bool
	behaves  []string       // the provider, call by call
	value    money.MicroUSD // that the session has; 0: enough
	isOver   bool           // the session
	requests int            // that the gateway gets
	status   int            // that the client learns of; 0: it gets its answer
}

// whole is an answer that is shorter than it may be. Writes of streams are cut anywhere.
const whole = "seed=7,chunks=odd"

// scenarios are each gone through whole and streamed. Who is refused by a limit, or because the session is over, does not try again; after
// a refusal with Retry-After the clients do.
var scenarios = []scenario{
	{name: "an answer", behaves: []string{whole}, requests: 1},
	{name: "a call of a tool", tool: true, behaves: []string{whole}, requests: 2},
	{name: "a busy provider", behaves: []string{"error=429,retry=1", "error=503", whole}, requests: 3},
	{name: "a session without value", behaves: []string{whole}, value: 1, requests: 1, status: http.StatusPaymentRequired},
	{name: "a session that is over", behaves: []string{whole}, isOver: true, requests: 1, status: http.StatusForbidden},
}

func usesOf(callers []caller) (all []*use) {
	for _, one := range callers {
		for _, s := range scenarios {
			for _, s.streamed = range []bool{false, true} {
				all = append(all, &use{caller: one, scenario: s})
			}
		}
	}
	return all
}

// outcome is what a client came to.
type outcome struct {
	Text    string   `json:"text"`
	Queries []string `json:"queries"` // of calls of the tool
	Status  int      `json:"status"`  // of the refusal
	Message string   `json:"message"`
}

// These clients are Node's, at the versions of the adapters.
func TestClientsInNodeAreBoundedUnchanged(t *testing.T) {
	t.Parallel()
	tool.Reads(t, "clients.mjs")
	linkPackages(t)
	makeCalls(t, nodeClients, ".", "node", "clients.mjs")
}

func TestLockFilesNameNoRegistry(t *testing.T) {
	t.Parallel()
	tool.LockNamesNoRegistry(t, agentsDir)
}

// agentsDir has the command-line agents.
const agentsDir = "agents"

// linkPackages has Node find the packages that the tests of the adapters install.
func linkPackages(t *testing.T) {
	t.Helper()
	adapters := filepath.Join("..", "..", "sdk", "adapters")
	tool.Install(t, adapters)
	if err := os.Symlink(filepath.Join(adapters, "node_modules"), "node_modules"); !errors.Is(err, fs.ErrExist) {
		must(0, err)(t)
	}
}

// makeCalls has a program make the calls of all scenarios with each client.
func makeCalls(t *testing.T, callers []caller, dir, name string, args ...string) {
	t.Helper()
	uses := usesOf(callers)
	w := newWorld(t, uses)
	outcomes := run(t, uses, dir, name, args...)
	want := textOf(t)
	for i, u := range uses {
		t.Run(u.name(), func(t *testing.T) {
			w.reconciles(t, u, u.scenario.requests, u.scenario.requests)
			got := outcomes[i]
			switch {
			case got.Status != u.scenario.status:
				t.Errorf("%d %s: want %d", got.Status, got.Message, u.scenario.status)
			case got.Status != 0 && !strings.Contains(got.Message, "Remit:"):
				t.Errorf("the client does not say who has refused: %s", got.Message)
			case got.Status == 0 && got.Text != want:
				t.Errorf("the answer is %q, want %q (%s)", got.Text, want, got.Message)
			case u.scenario.tool && (len(got.Queries) != 1 || got.Queries[0] != wanted):
				t.Errorf("the tool was called for %q", got.Queries)
			}
		})
	}
}

const programTime = 3 * time.Minute

// run runs a program that makes the calls of these uses, and returns what they came to.
func run(t *testing.T, uses []*use, dir, name string, args ...string) (outcomes []outcome) {
	t.Helper()
	type of struct {
		Client   string `json:"client"`
		BaseURL  string `json:"base_url"`
		Key      string `json:"key"`
		Model    string `json:"model"`
		Streamed bool   `json:"streamed"`
		Tool     bool   `json:"tool"`
	}
	var cases []of
	for _, u := range uses {
		cases = append(cases, of{u.caller.name, u.url, u.key, u.model(), u.scenario.streamed, u.scenario.tool})
	}
	ctx, cancel := context.WithTimeout(t.Context(), programTime)
	defer cancel()
	var output, problems bytes.Buffer
	command := tool.Command(ctx, dir, name, args...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(must(json.Marshal(cases))(t)), &output, &problems
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, tool.Indented(problems.Bytes()))
	}
	if err := json.Unmarshal(output.Bytes(), &outcomes); err != nil || len(outcomes) != len(uses) {
		t.Fatalf("%s has %d outcomes of %d uses: %v\n%s", name, len(outcomes), len(uses), err, tool.Indented(output.Bytes()))
	}
	return outcomes
}

// textOf returns the text of the provider's whole answers.
func textOf(t *testing.T) string {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"any"}`))
	request.Header.Set("X-Fake", whole)
	recorder := httptest.NewRecorder()
	new(fakeprovider.Provider).ServeHTTP(recorder, request)
	var answer struct {
		Choices []struct {
			Message struct{ Content string } `json:"message"`
			Finish  string                   `json:"finish_reason"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || len(answer.Choices) != 1 || answer.Choices[0].Finish != "stop" {
		t.Fatalf("%v: %s", err, recorder.Body)
	}
	return answer.Choices[0].Message.Content
}

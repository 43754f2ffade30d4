package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"remit/client"
	"remit/money"
	"remit/remittest"
)

// programs returns the Go programs of docs/bound-an-agent.md, each in a file of its own: of models, of an MCP server, of a test.
func programs(t *testing.T) (files []string) {
	t.Helper()
	page := must(os.ReadFile("../docs/bound-an-agent.md"))(t)
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1) {
		name := "main.go"
		if strings.Contains(string(block[1]), "package agent_test") {
			name = "agent_test.go"
		}
		file := filepath.Join(t.TempDir(), name)
		noError(t, os.WriteFile(file, block[1], 0o600))
		files = append(files, file)
	}
	if len(files) != 3 {
		t.Fatalf("the page has %d programs", len(files))
	}
	return files
}

func TestTheGoProgramOfThePageMetersAModel(t *testing.T) {
	t.Parallel()
	file := programs(t)[0]
	remit := remittest.New(t)
	table := `{"gpt-4.1": {"input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06}}`
	noError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "prices.json"), []byte(table), 0o600))
	binary := filepath.Join(filepath.Dir(file), "models")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	_, provider, _ := strings.Cut(startFakeProvider(t), "=")
	for _, row := range []struct {
		budget money.MicroUSD
		want   string
	}{{money.USD, "200 true <nil>\n"}, {1, "out of max_value_usd: nothing was sent\n"}} {
		session, variables := remit.Environment(t, client.SessionParams{MaxValue: &row.budget})
		cmd := exec.CommandContext(t.Context(), binary)
		cmd.Dir, cmd.Env = filepath.Dir(file), slices.Concat(variables, []string{"OPENAI_BASE_URL=" + provider + "/v1"})
		if output, err := cmd.CombinedOutput(); err != nil || string(output) != row.want {
			t.Errorf("%v: it prints %q, want %q", err, output, row.want)
		}
		info, err := session.Get(t.Context())
		if err != nil || info.ValueHeld != 0 || (info.ValueUsed > 0) != (row.budget > 1) {
			t.Errorf("%s used, %s held: %v", info.ValueUsed, info.ValueHeld, err)
		}
	}
}

func TestTheGoProgramOfThePageChargesForATool(t *testing.T) {
	t.Parallel()
	session, variables := remittest.New(t).Environment(t, client.SessionParams{})
	cmd := exec.CommandContext(t.Context(), "go", "run", programs(t)[1])
	cmd.Env = append(os.Environ(), variables...)
	agent := must(mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil))(t)
	defer agent.Close()
	result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: map[string]any{"text": "owls"}})
	if err != nil || result.IsError {
		t.Fatalf("%v: %v", err, result)
	}
	if info, err := session.Get(t.Context()); err != nil || info.ValueUsed != money.USD/100 {
		t.Errorf("%s used: %v", info.ValueUsed, err)
	}
}

func TestTheGoTestOfThePagePasses(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "go", "test", programs(t)[2]).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(output), "ok") {
		t.Errorf("%v\n%s", err, output)
	}
}

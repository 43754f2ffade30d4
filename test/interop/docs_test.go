package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"remit/test/tool"
)

// example is a code block in docs/oauth.md: its language, and the texts that it must print in this order.
type example struct {
	language string
	prints   []string
}

// examples are the code blocks of docs/oauth.md in their order.
var examples = []example{
	{"sh", []string{
		`"issuer":`, `"token_endpoint":`, `"scope":"read write"`, `"scope":"read"`,
		`"active":true`, `"scope":"read"`, `{"active":false}`,
	}},
	{"go", []string{"the agent's sessions: 200 OK"}},
	{"ts", []string{"granted: read"}},
	{"ts", []string{"AUTHORIZED read write"}},
	{"go", []string{"the agent may: [read write]"}},
	{"ts", []string{"the agent may: read write"}},
}

func TestTheExamplesOfTheOAuthPageRun(t *testing.T) {
	t.Parallel()
	page := must(os.ReadFile("../../docs/oauth.md"))(t)
	blocks := regexp.MustCompile("(?ms)^```(sh|go|ts)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != len(examples) {
		t.Fatalf("the page has %d examples, want %d: add what each prints to examples", len(blocks), len(examples))
	}
	org := newOrganization(t, sharedService(t))
	settings := append(org.clientSettings(org.newAgent(t, "read", "write"), ""), "MCP_URL="+startMCPServer(t, org.service))
	for i, block := range blocks {
		t.Run(fmt.Sprint(block[1], " ", i+1), func(t *testing.T) {
			t.Parallel()
			if block[1] != examples[i].language {
				t.Fatalf("the language is %s, want %s", block[1], examples[i].language)
			}
			output := runExample(t, block[1], block[2], settings)
			rest := output
			for _, part := range examples[i].prints {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Fatalf("the output lacks %s, or has it in another order:\n%s", part, tool.Indented([]byte(output)))
				}
				rest = after
			}
		})
	}
}

func runExample(t *testing.T, language, code string, settings []string) string {
	t.Helper()
	switch language {
	case "ts":
		code = strings.NewReplacer(": string)", ")", " as string[]", "").Replace(code) // node takes no types
		return runNode(t, settings, code, "--input-type=module", "-")
	case "go":
		file := filepath.Join(t.TempDir(), "main.go")
		noError(t, os.WriteFile(file, []byte(code), 0o600))
		return runCommand(t, append(os.Environ(), settings...), "", "go", "run", file)
	default:
		tool.Path(t, "curl")
		return runCommand(t, append([]string{"PATH=" + os.Getenv("PATH")}, settings...), code, "sh", "-eu")
	}
}

func runCommand(t *testing.T, env []string, stdin, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // go run may have to compile the libraries first
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdin, cmd.WaitDelay = env, strings.NewReader(stdin), time.Second
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, tool.Indented(output))
	}
	return string(output)
}

// startMCPServer runs the part of an MCP server that names the service as its authorization server, and returns its URL.
func startMCPServer(t *testing.T, s *service) string {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		err := json.NewEncoder(w).Encode(map[string]any{"resource": server.URL + "/mcp", "authorization_servers": []string{s.URL}})
		if err != nil {
			t.Error(err)
		}
	})
	return server.URL + "/mcp"
}

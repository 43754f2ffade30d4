package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"remit/client"
	"remit/money"
)

// The first lines of README.md are a program without its imports.
func TestTheFirstLinesOfTheDocumentationWork(t *testing.T) {
	t.Parallel()
	page := must(os.ReadFile("README.md"))(t)
	block := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(page)
	file := filepath.Join(t.TempDir(), "main.go")
	program := "package main\n\nimport (\n\"context\"; \"errors\"; \"fmt\"; \"log\"\n\"remit/client\"; \"remit/money\"\n)\n\n" +
		"func main() {\nctx := context.Background()\n" + string(block[1]) + "}\n"
	write(t, file, program)

	o := organization()
	made := must(o.CreateAgent(t.Context(), client.AgentParams{Name: "scout"}))(t)
	session := must(o.CreateSession(t.Context(), client.SessionParams{AgentID: made.ID, MaxActions: 2, MaxValue: new(money.USD / 2)}))(t)
	for _, want := range []string{"1 actions and 0.13 USD left <nil>", "out of max_value_usd: nothing was charged"} {
		cmd := exec.CommandContext(t.Context(), "go", "run", file)
		cmd.Env = append(os.Environ(), "REMIT_ADDR="+startedService().url, "REMIT_AGENT="+made.ID, "REMIT_SECRET="+string(made.Secret), "REMIT_SESSION="+session.ID)
		output, _ := cmd.CombinedOutput() // the second run ends with a failure, by its own word
		if !strings.Contains(string(output), want) {
			t.Errorf("they print %s, want %s", output, want)
		}
	}
}

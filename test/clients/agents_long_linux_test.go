//go:build long && amd64

package clients

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remit/test/tool"
)

// agent is a command-line agent that npm has.
type agent struct {
	caller
	program  string // below node_modules; a pattern, because the name of the machine's kind is in it
	args     []string
	settings []string
	refused  int // requests for one prompt at most, when all are refused: some probe, and ask for a title first
}

// $URL, $KEY, $MODEL and $PROMPT stand for what they say.
var agents = []agent{
	{
		caller:   caller{"Claude Code", "anthropic", map[string]string{"Bash": `{"command":"echo looked up"}`}},
		program:  "@anthropic-ai/claude-code-*/claude",
		args:     []string{"-p", "$PROMPT", "--model", "$MODEL", "--allowedTools", "Bash"},
		settings: []string{"ANTHROPIC_BASE_URL=$URL", "ANTHROPIC_API_KEY=$KEY", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
		refused:  3,
	},
	{ // It has no variable for the URL, and asks for a search of the web, which the provider runs, unless a setting forbids that.
		caller:   caller{"Codex", "openai", map[string]string{"exec_command": `{"cmd":"echo looked up"}`}},
		program:  "@openai/codex-*/vendor/*/bin/codex",
		args:     []string{"exec", "--skip-git-repo-check", "-m", "$MODEL", "-c", `openai_base_url="$URL"`, "-c", `web_search="disabled"`, "$PROMPT"},
		settings: []string{"CODEX_API_KEY=$KEY"},
		refused:  2,
	},
	{
		caller:   caller{"opencode", "openai", map[string]string{"bash": `{"command":"echo looked up","description":"looks"}`}},
		program:  "opencode-linux-x64-baseline/bin/opencode",
		args:     []string{"run", "-m", "openai/$MODEL", "$PROMPT"},
		settings: []string{"OPENAI_BASE_URL=$URL", "OPENAI_API_KEY=$KEY", "OPENCODE_DISABLE_AUTOUPDATE=1"},
		refused:  2,
	},
}

const agentTime = 2 * time.Minute

// The agents offer tools of their own to each call, and stream each.
func TestCommandLineAgentsAreBoundedUnchanged(t *testing.T) {
	t.Parallel()
	tool.Install(t, agentsDir)
	var uses []*use
	var by []agent
	for _, one := range agents {
		for _, s := range scenarios[1:] {
			s.streamed = true
			uses, by = append(uses, &use{caller: one.caller, scenario: s}), append(by, one)
		}
	}
	w := newWorld(t, uses)
	text := words(textOf(t))
	t.Run("agents", func(t *testing.T) {
		for i, u := range uses {
			t.Run(u.name(), func(t *testing.T) {
				t.Parallel()
				says, least, most := text, u.scenario.requests, 20
				if u.scenario.status != 0 {
					says, least, most = "Remit:", 1, by[i].refused
				}
				output := by[i].prompt(t, u)
				w.reconciles(t, u, least, most)
				if !strings.Contains(words(output), says) {
					t.Errorf("it does not say %q:\n%s", says, tool.Indented([]byte(output)))
				}
			})
		}
	})
}

// prompt has the agent work on a prompt, in an empty directory, and returns what it prints.
func (a *agent) prompt(t *testing.T, u *use) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(agentsDir, "node_modules", a.program))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s is not installed: %v", a.program, err)
	}
	program := must(filepath.Abs(found[0]))(t)
	ctx, cancel := context.WithTimeout(t.Context(), agentTime)
	defer cancel()
	values := strings.NewReplacer("$URL", u.url, "$KEY", u.key, "$MODEL", u.model(), "$PROMPT", "What is left of the budget?")
	command := tool.Command(ctx, t.TempDir(), program)
	for _, arg := range a.args {
		command.Args = append(command.Args, values.Replace(arg))
	}
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	for _, setting := range a.settings {
		command.Env = append(command.Env, values.Replace(setting))
	}
	output, err := command.CombinedOutput()
	if u.scenario.status == 0 && err != nil || ctx.Err() != nil {
		t.Errorf("%v\n%s", err, tool.Indented(output))
	}
	return string(output)
}

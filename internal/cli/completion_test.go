package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// completing is bash that runs the completion which the script of a program registers, as for the key Tab.
func (s *terminal) completing(program, line string) *exec.Cmd {
	s.t.Helper()
	bash := s.command()
	bash.Path, bash.Args = must(exec.LookPath("bash"))(s.t), []string{"bash", "-euc", `
		source <("$1" completion bash)
		COMP_LINE=$2 COMP_POINT=${#2}; export COMP_LINE COMP_POINT
		eval "set -- $(complete -p remit)"; while [ "$1" != -C ]; do shift; done
		eval "$2"`, "bash", program, line}
	return bash
}

func TestBashCompletesCommandsFlagsAndValues(t *testing.T) {
	t.Parallel()
	s := newTerminal(t)
	for line, want := range map[string][]string{
		"remit session ":             {"approve", "create", "deny", "end", "key", "list", "requests", "resume", "show", "suspend", "tree", "update", "usage", "watch"},
		"remit session w":            {"watch"},
		"remit a":                    {"agent", "audit"},
		"remit key ":                 {"create", "list", "revoke", "rotate"},
		"remit usage --group-by ":    {"action_type", "agent", "day", "session"},
		"remit agent list --sta":     {"--status"},
		"remit agent list --status ": {"active", "all", "revoked"},
		"remit completion ":          {"bash", "fish", "zsh"},
		"remit serve --redis":        {"--redis-url"},
		"remit gateway --conf":       {"--config"},
	} {
		bash := s.completing(s.command().Path, line)
		output, err := bash.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", line, err, output)
		}
		got := strings.Fields(string(output))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q goes on with %q, want %q", line, got, want)
		}
	}
}

// A directory may have any name: sourcing the script and pressing Tab must not execute parts of it.
func TestCompletionFindsTheProgramInADirectoryWithAnOddName(t *testing.T) {
	t.Parallel()
	s := newTerminal(t)
	work := t.TempDir()
	binary := s.command().Path
	for _, name := range []string{"with space", "q$(touch pwned)", "q`touch pwned`", "it's", `a"b;touch pwned`, "new\nline"} {
		dir := filepath.Join(work, name)
		must(0, os.Mkdir(dir, 0o700))(t)
		program := filepath.Join(dir, "remit")
		must(0, os.Link(binary, program))(t)
		bash := s.completing(program, "remit session w")
		bash.Dir = work
		if output, err := bash.CombinedOutput(); err != nil || string(output) != "watch\n" {
			t.Errorf("in %q: %v: %q", name, err, output)
		}
		if _, err := os.Stat(filepath.Join(work, "pwned")); err == nil {
			t.Fatalf("a command in the name %q has run", name)
		}
	}
}

func TestEachShellGetsACompletionScript(t *testing.T) {
	t.Parallel()
	s := newTerminal(t)
	for shell, want := range map[string]string{
		"bash": "complete -o default", "zsh": "bashcompinit", "fish": "complete -f -c remit",
	} {
		if script := s.good("completion", shell).stdout; !strings.Contains(script, want) || !strings.Contains(script, string(filepath.Separator)+"remit") {
			t.Errorf("%s: %s", shell, script)
		}
	}
}

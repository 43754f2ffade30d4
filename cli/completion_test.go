package cli_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBashCompletesCommandsFlagsAndValues(t *testing.T) {
	t.Parallel()
	s := newTerminal(t)
	for line, want := range map[string][]string{
		"remit session ":             {"create", "end", "list", "show", "update", "watch"},
		"remit session w":            {"watch"},
		"remit a":                    {"agent"},
		"remit agent list --sta":     {"--status"},
		"remit agent list --status ": {"active", "all", "revoked"},
		"remit completion ":          {"bash", "fish", "zsh"},
		"remit serve --redis":        {"--redis-url"},
	} {
		// The completion that the script registered is run as bash runs it for the key Tab.
		script := s.good("completion", "bash").stdout + `
			COMP_LINE=$1 COMP_POINT=${#1}; export COMP_LINE COMP_POINT
			eval "set -- $(complete -p remit)"; while [ "$1" != -C ]; do shift; done
			"$2"`
		bash := s.command()
		bash.Path, bash.Args = bashPath(t), []string{"bash", "-euc", script, "bash", line}
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

func bashPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEachShellGetsAScriptThatAsksThisProgram(t *testing.T) {
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

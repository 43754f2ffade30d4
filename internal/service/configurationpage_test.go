package service

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Each flag of remit serve and remit gateway has the environment variable that docs/configuration.md promises, and says in its help what it
// does.
func TestEveryFlagHasItsVariableAndHelp(t *testing.T) {
	t.Parallel()
	for _, f := range append(flagsOf(t, new(serve)), flagsOf(t, new(gatewayCommand))...) {
		if env := "REMIT_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")); f.Name != "help" && f.Envs[0] != env {
			t.Errorf("--%s is %q in the environment; the page promises %s", f.Name, f.Envs, env)
		}
		if f.Help == "" {
			t.Errorf("--%s has no help", f.Name)
		}
	}
}

func TestThePageOfTheConfigurationNamesFlagsThatExist(t *testing.T) {
	t.Parallel()
	page := must(os.ReadFile("../../docs/configuration.md"))(t)
	var there []string
	for _, f := range flagsOf(t, new(serve)) {
		there = append(there, "--"+f.Name)
	}
	named := regexp.MustCompile("`(--[a-z-]+)").FindAllStringSubmatch(string(page), -1)
	if len(named) == 0 {
		t.Fatal("the page names no flag")
	}
	for _, name := range named {
		if name[1] != "--aclfile" && !slices.Contains(there, name[1]) { // that one is redis-server's
			t.Errorf("remit serve has no %s", name[1])
		}
	}
}

func flagsOf(t *testing.T, command any) []*kong.Flag {
	t.Helper()
	parser := must(kong.New(command, kong.DefaultEnvars("REMIT")))(t)
	return parser.Model.Flags
}

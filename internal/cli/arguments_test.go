package cli_test

import (
	"strings"
	"testing"
)

func TestFlagsMayStandBeforeTheCommand(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	key, addr := s.env["REMIT_API_KEY"], s.env["REMIT_ADDR"]
	s.newAgent("read")
	delete(s.env, "REMIT_API_KEY")
	delete(s.env, "REMIT_ADDR")
	for _, line := range [][]string{
		{"--addr", addr, "--api-key", key, "agent", "list"},
		{"--addr=" + addr, "agent", "list", "--api-key=" + key},
		{"--json", "--addr", addr, "--api-key", key, "agent", "list", "--status", "active"},
		{"agent", "list", "--addr", addr, "--api-key", key},
	} {
		if r := s.good(line...); !strings.Contains(r.stdout, "scout") {
			t.Errorf("remit %s prints %s", strings.Join(line, " "), r.stdout)
		}
	}
}

func TestHelpOfACommand(t *testing.T) {
	t.Parallel()
	s := newTerminal(t)
	for line, says := range map[string]string{
		"help":                  `^  session create <agent>`,
		"--help":                `^  session create <agent>`,
		"help session create":   `^Usage: remit session create <agent>`,
		"help serve":            `^Usage: remit serve`,
		"session create --help": `service's setting, 1000 unless changed`,
	} {
		r := s.good(strings.Fields(line)...)
		has(t, strings.Join(strings.Fields(r.stdout), " ")+"\n"+r.stdout, says)
	}
}

func TestAMisspeltCommandGetsASuggestion(t *testing.T) {
	t.Parallel()
	s := newTerminal(t)
	for line, says := range map[string]string{
		"agents list":           `unexpected argument agents, did you mean .*"agent"`,
		"sesion":                `unexpected argument sesion, did you mean "session"\?`,
		"agent lst":             `unexpected argument lst, did you mean "list"\?`,
		"--addr http://x agnet": `unexpected argument agnet, did you mean "agent"\?`,
		"agent list --statu x":  `unknown flag --statu, did you mean "--status"\?`,
	} {
		s.fails(exitUsage, says, strings.Fields(line)...)
	}
}

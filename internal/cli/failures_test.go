package cli_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"
)

const (
	exitFailed = 1
	exitUsage  = 80 // as kong exits
)

func TestAFailureIsOneLineOnStandardError(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	scout, _ := s.newAgent("read")
	session := s.newSession("--max-actions", "5")
	unknown := "01a1fd30-717a-7969-8ec8-e3757bbb6c57"
	const away = "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		exit int
		says string
	}{
		"wrong key": {map[string]string{"REMIT_API_KEY": "rmk_wrong"}, []string{"agent", "list"}, exitFailed,
			`^remit: invalid_api_key: .+ \(request \S+\)$`},
		"no key": {map[string]string{"REMIT_API_KEY": ""}, []string{"agent", "list"}, exitFailed,
			`^remit: no API key: set REMIT_API_KEY, or use --api-key=@FILE`},
		"no credential": {map[string]string{"REMIT_API_KEY": ""}, []string{"session", "watch", session}, exitFailed,
			`^remit: no credential: set REMIT_API_KEY, or REMIT_AGENT and REMIT_SECRET$`},
		"key and agent": {nil, []string{"session", "list", "--api-key=x", "--agent=x"}, exitFailed, `^remit: use either --api-key, or --agent and --secret$`},
		"half an agent": {nil, []string{"session", "list", "--agent", scout}, exitFailed, `^remit: no agent: set REMIT_AGENT`},
		"no secret":     {nil, []string{"token"}, exitFailed, `^remit: no agent: set REMIT_AGENT and REMIT_SECRET`},
		"wrong secret": {map[string]string{"REMIT_AGENT": scout, "REMIT_SECRET": "rms_wrong"}, []string{"token"}, exitFailed,
			`^remit: invalid_credentials: .+ \(request \S+\)$`},
		"no file":           {nil, []string{"agent", "list", "--api-key=@/no/such"}, exitFailed, `^remit: open /no/such: no such file`},
		"unknown agent":     {nil, []string{"agent", "show", unknown}, exitFailed, `^remit: not_found: .+ \(request \S+\)$`},
		"watch of it":       {nil, []string{"session", "watch", unknown}, exitFailed, `^remit: not_found: .+ \(request \S+\)$`},
		"not a budget":      {nil, []string{"session", "create", scout, "--max-value-usd", "0.0000001"}, exitUsage, `at most 6 decimals`},
		"no actions":        {nil, []string{"session", "create", scout, "--max-actions", "0"}, exitUsage, `--max-actions must be at least 1`},
		"half a second":     {nil, []string{"session", "create", session, "--max-lease", "500ms"}, exitUsage, `--max-lease must be whole seconds, or 0s`},
		"no time":           {nil, []string{"session", "update", session, "--expires-in", "0s"}, exitUsage, `--expires-in must be at least 1s`},
		"no change":         {nil, []string{"session", "update", session}, exitUsage, `set at least one of`},
		"no object":         {nil, []string{"agent", "create", "x", "--metadata", "[1]"}, exitUsage, `--metadata: must be a JSON object`},
		"too quick":         {nil, []string{"session", "watch", session, "--interval", "1ms"}, exitUsage, `--interval must be at least 100ms`},
		"wrong flag":        {nil, []string{"agent", "list", "--colour"}, exitUsage, `unknown flag --colour`},
		"wrong status":      {nil, []string{"agent", "list", "--status", "dead"}, exitUsage, `--status must be one of`},
		"no role":           {nil, []string{"key", "create", "x"}, exitUsage, `missing flags: --role=viewer\|operator\|admin$`},
		"three groups":      {nil, []string{"usage", "--group-by", "day,agent,session"}, exitUsage, `--group-by takes one or two groups`},
		"a group twice":     {nil, []string{"usage", "--group-by", "day", "--group-by", "day"}, exitUsage, `--group-by takes one or two groups`},
		"no date":           {nil, []string{"usage", "--from", "yesterday"}, exitUsage, `--from: must be a date`},
		"two formats":       {nil, []string{"usage", "--csv", "--json"}, exitUsage, `use either --csv or --json`},
		"no webhook change": {nil, []string{"webhook", "update", unknown}, exitUsage, `set at least one of --url`},
		"nothing to follow": {map[string]string{"REMIT_ADDR": away}, []string{"events", "--follow"}, exitFailed, `^remit: no response from ` + away},
		"no trail followed": {map[string]string{"REMIT_ADDR": away}, []string{"events", unknown, "--follow"}, exitFailed, `^remit: no response from ` + away},
		"wrong command":     {nil, []string{"agent", "kill"}, exitUsage, `unexpected argument kill`},
		"nothing there":     {map[string]string{"REMIT_ADDR": away}, []string{"agent", "list"}, exitFailed, `^remit: no response from ` + away + `: connect: connection refused$`},
		"nothing to create": {map[string]string{"REMIT_ADDR": away}, []string{"org", "create", "x"}, exitFailed, `^remit: no response from ` + away + `: connect: connection refused$`},
		"nothing to watch":  {map[string]string{"REMIT_ADDR": away}, []string{"session", "watch", session}, exitFailed, `^remit: no response from ` + away + `: connect: connection refused$`},
		"no URL":            {map[string]string{"REMIT_ADDR": "localhost"}, []string{"agent", "list"}, exitFailed, `^remit: --addr or REMIT_ADDR: the base URL needs http:// or https:// before the host$`},
		"no scheme":         {map[string]string{"REMIT_ADDR": "10.0.0.1:8080"}, []string{"agent", "list"}, exitFailed, `^remit: --addr or REMIT_ADDR: the base URL needs http:// or https:// before the host$`},
		"another scheme":    {map[string]string{"REMIT_ADDR": "redis://localhost"}, []string{"agent", "list"}, exitFailed, `^remit: --addr or REMIT_ADDR: .*want https://host`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := s.with(t, c.env).run(c.args...)
			if r.exit != c.exit || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 || !regexp.MustCompile(c.says).MatchString(strings.TrimSpace(r.stderr)) {
				t.Errorf("exit %d, stdout %q, stderr %q; want exit %d, %s", r.exit, r.stdout, r.stderr, c.exit, c.says)
			}
		})
	}
}

func TestARefusalNamesTheLimitTheRestAndTheNeed(t *testing.T) {
	t.Parallel()
	organization, agent, session := actor(t, "pay", "sessions:delegate")
	id := agent.env["REMIT_AGENT"]
	organization.good("charge", session, "--value-usd", "0.37")
	organization.good("agent", "update", id, "--max-value-usd-per-day", "2.5", "--max-actions-per-minute", "100")
	organization.good("budget", "set", "5", "--period", "none")
	wide := organization.object("session", "create", id, "--max-actions", "1000", "--max-value-usd", "3")["id"].(string)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"charge", session, "--value-usd", "0.75"}, `; the session's max_value_usd of 1 leaves 0.63 USD; this call needs 0.75 USD \(request`},
		{[]string{"charge", session, "--count", "9"}, `; the session's max_actions of 5 leaves 4; this call needs 9 \(request`},
		{[]string{"session", "create", id, "--parent", session, "--max-actions", "1", "--max-value-usd", "0.75"}, `; the parent session's max_value_usd of 1 leaves 0.63 USD; this call needs 0.75 USD \(request`},
		{[]string{"charge", wide, "--value-usd", "2.9"}, `; the agent's max_value_usd_per_day is reached until \S+Z; this call needs 2.9 USD \(request`},
		{[]string{"charge", wide, "--count", "101"}, `; the agent's max_actions_per_minute is reached; this call needs 101 \(request`},
		{[]string{"session", "create", id, "--max-value-usd", "4"}, `; the budget leaves 2 USD; this call needs 4 USD \(request`},
	} {
		organization.fails(exitFailed, c.says, c.args...)
	}
}

// with is the terminal for another test, with further settings.
func (s *terminal) with(t *testing.T, env map[string]string) *terminal {
	other := newTerminal(t)
	maps.Copy(other.env, s.env)
	maps.Copy(other.env, env)
	return other
}

// Errors do not repeat a credential, whether it was given by mistake or in the environment.
func TestFailuresContainNoCredential(t *testing.T) {
	t.Parallel()
	s := newTerminal(t)
	const key, secret = "rmk_not-to-be-told", "rms_not-to-be-told"
	s.env["REMIT_API_KEY"], s.env["REMIT_AGENT"], s.env["REMIT_SECRET"] = key, "x", secret
	for _, line := range []string{
		"agent list", "agent list --help", "session list", "session list --help", "token", "token --help", "token inspect --help",
		"session watch x", "agent list --api-key " + key + " --wrong", "agent list --addr ftp://u:" + key + "@h", "org create --help",
	} {
		r := s.run(strings.Fields(line)...)
		if out := r.stdout + r.stderr; out == "" || strings.Contains(out, key) || strings.Contains(out, secret) {
			t.Errorf("remit %s prints %s", line, out)
		}
	}
}

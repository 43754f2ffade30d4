package cli_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"remit/test/serviceproc"
)

func has(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(`(?m)` + p).MatchString(text) {
			t.Errorf("%q is not in\n%s", p, text)
		}
	}
}

func TestATableShowsANewCredentialOnce(t *testing.T) {
	t.Parallel()
	s := newTerminal(t)
	org := s.good("org", "create", "acme", "--metadata", `{"tier":"<1>"}`)
	has(t, org.stdout, `^ID        [0-9a-f-]{36}$`, `^NAME      acme$`, `^METADATA  {"tier":"<1>"}$`, `^CREATED   \S+Z$`, `^API KEY   rmk_\S+$`)
	has(t, org.stderr, `^remit: the API key is shown only once`)
	s.env["REMIT_API_KEY"] = regexp.MustCompile(`rmk_\S+`).FindString(org.stdout)
	id := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(org.stdout)
	if shown := s.good("org", "show", id); strings.Contains(shown.stdout+shown.stderr, "rmk_") || !strings.Contains(shown.stdout, "acme") {
		t.Errorf("org show: %s%s", shown.stdout, shown.stderr)
	}

	agent := s.good("agent", "create", "scout", "--scopes", "read,pay", "--scopes", "admin", "--description", "looks around")
	has(t, agent.stdout, `^SCOPES +read,pay,admin$`, `^DESCRIPTION +looks around$`, `^SECRET +rms_\S+$`)
	has(t, agent.stderr, `^remit: the agent's secret is shown only once`)
	scout := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(agent.stdout)

	session := s.good("session", "create", scout, "--max-actions", "2", "--max-value-usd", "0.50", "--expires-in", "90s", "--scopes", "pay")
	has(t, session.stdout, `^STATUS   active$`, `^ACTIONS  0 of 2$`, `^VALUE    0 of 0.5 USD$`, `^SCOPES   pay$`)
	first := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(session.stdout)
	s.charge(first, "--value-usd", "0.37")
	has(t, s.good("session", "list").stdout,
		`^ID +AGENT +STATUS  ACTIONS  VALUE         EXPIRES$`, `^`+first+`  `+scout+`  active  1/2      0.37/0.5 USD  \S+Z$`)
	has(t, s.good("session", "update", first, "--max-value-usd", "1.000001").stdout, `^VALUE    0.37 of 1.000001 USD$`)
	has(t, s.good("session", "update", first, "--max-lease", "5s").stdout, `^LEASES   up to 5s$`)
	has(t, s.good("session", "end", first).stdout, `^STATUS   completed$`, `^VALUE    0.37 of 1.000001 USD$`, `^ENDED    \S+Z$`)
	has(t, s.good("agent", "revoke", scout).stdout, `^STATUS +revoked$`, `^REVOKED +\S+Z$`)
	has(t, s.good("agent", "list").stdout, `^ID +NAME   STATUS   SCOPES          CREATED$`, `^`+scout+`  scout  revoked  read,pay,admin  \S+Z$`)
}

func TestJSONHasTheNamesOfTheAPI(t *testing.T) {
	t.Parallel()
	s := newTerminal(t)
	names := func(members map[string]any, want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(members)); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	org := s.object("org", "create", "acme")
	names(org, "api_key", "created_at", "id", "metadata", "name")
	id := org["id"].(string)
	s.env["REMIT_API_KEY"] = org["api_key"].(string)
	names(s.object("org", "show", id), "created_at", "id", "metadata", "name", "quotas", "usage")
	rotated := s.object("org", "rotate-key", id)
	names(rotated, "api_key", "previous_expires_at")
	s.env["REMIT_API_KEY"] = rotated["api_key"].(string)

	agent := s.object("agent", "create", "scout", "--scopes", "read")
	names(agent, "created_at", "id", "limits", "metadata", "name", "org_id", "scopes", "secret", "status", "usage")
	scout := agent["id"].(string)
	names(s.object("agent", "show", scout), "created_at", "id", "limits", "metadata", "name", "org_id", "scopes", "status", "usage")
	names(s.object("agent", "rotate-secret", scout), "id", "previous_expires_at", "secret")

	whole := []string{"action_count", "agent_id", "created_at", "enforcement", "expires_at", "id", "max_actions", "max_lease_seconds", "max_value_usd", "metadata",
		"scopes", "status", "value_committed_usd", "value_held_usd", "value_used_usd"}
	session := s.object("session", "create", scout, "--max-value-usd", "0")
	names(session, whole...)
	names(s.object("session", "show", session["id"].(string)), whole...)
	list := document[[]map[string]any](s.good("session", "list", scout, "--status", "active", "--json"))
	names(list[0], "action_count", "agent_id", "expires_at", "id", "max_actions", "max_value_usd", "status", "value_used_usd")
	names(s.object("session", "end", session["id"].(string)), slices.Sorted(slices.Values(append(whole, "ended_at")))...)
	names(s.object("agent", "revoke", scout), "created_at", "id", "limits", "metadata", "name", "org_id", "revoked_at", "scopes", "status", "usage")
	if made := s.good("agent", "create", "x", "--metadata", `{"for":"<a>&b"}`, "--json").stdout; !strings.Contains(made, `"metadata":{"for":"<a>&b"}`) {
		t.Errorf("its metadata has changed on the way: %s", made)
	}
	wantEqual(t, "no sessions", s.good("session", "list", "--status", "active", "--json").stdout, "[]\n")
}

// The command line takes precedence over the environment.
func TestAgentFlagsTakePrecedenceOverAKeyInTheEnvironment(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	s.newSession() // another agent's
	scout, secret := s.newAgent("read")
	s.object("session", "create", scout)
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		sees int
	}{
		"agent in the line":               {nil, []string{"--agent", scout, "--secret", secret}, 1},
		"its secret in the environment":   {map[string]string{"REMIT_SECRET": secret}, []string{"--agent", scout}, 1},
		"both in the environment":         {map[string]string{"REMIT_SECRET": secret, "REMIT_AGENT": scout}, nil, 2},
		"the key in the line":             {map[string]string{"REMIT_SECRET": secret, "REMIT_AGENT": scout}, []string{"--api-key", s.env["REMIT_API_KEY"]}, 2},
		"an agent that is wrong is wrong": {nil, []string{"--agent", scout, "--secret", "rms_wrong"}, 0},
	} {
		r := s.with(t, c.env).run(append([]string{"session", "list", "--json"}, c.args...)...)
		if got := strings.Count(r.stdout, `"agent_id"`); got != c.sees || (r.exit == 0) != (c.sees > 0) {
			t.Errorf("%s: sees %d sessions, want %d: exit %d, %s", name, got, c.sees, r.exit, r.stderr)
		}
	}
}

func TestASecretIsExchangedForValidTokens(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	scout, secret := s.newAgent("read", "pay")
	table := s.run("token", "--agent", scout, "--secret", secret).stdout
	has(t, table, `^ACCESS TOKEN   eyJ\S+$`, `^REFRESH TOKEN  rmr_\S+$`, `^EXPIRES IN     1h0m0s$`)
	pair := s.object("token", "get", "--agent="+scout, "--secret="+secret)
	if pair["token_type"] != "bearer" || pair["expires_in"] != 3600.0 {
		t.Errorf("%v", pair)
	}
	for _, name := range []string{"access_token", "refresh_token"} {
		s.stdin = pair[name].(string) + "\n"
		if info := s.object("token", "inspect"); info["active"] != true || info["agent_id"] != scout || info["scope"] != "read pay" {
			t.Errorf("the %s: %v", name, info)
		}
	}
	has(t, s.good("token", "inspect").stdout, `^ACTIVE +true$`, `^SCOPES +read pay$`, `^EXPIRES +\S+Z$`)
	s.good("agent", "revoke", scout)
	wantEqual(t, "of a revoked agent", s.good("token", "inspect", "--json").stdout, `{"active":false}`+"\n")
}

// No command needs a credential as an argument, which every process of the machine can see.
func TestCredentialsComeFromTheEnvironmentAFileOrStandardInput(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	key := s.env["REMIT_API_KEY"]
	file := written(t, key+"\n")
	for name, give := range map[string]func(s *terminal) []string{
		"environment":             func(s *terminal) []string { s.env["REMIT_API_KEY"] = key; return nil },
		"file":                    func(*terminal) []string { return []string{"--api-key", "@" + file} },
		"file in the environment": func(s *terminal) []string { s.env["REMIT_API_KEY"] = "@" + file; return nil },
		"standard input":          func(s *terminal) []string { s.stdin = key + "\n"; return []string{"--api-key", "-"} },
		"argument":                func(*terminal) []string { return []string{"--api-key", key} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTerminal(t)
			s.good(append([]string{"agent", "list"}, give(s)...)...)
		})
	}
}

func TestCreateOrganizationSendsTheBootstrapToken(t *testing.T) {
	t.Parallel()
	file := written(t, "bootstrap-0123456789abcdef\n")
	s := newTerminal(t)
	s.env["REMIT_ADDR"] = serviceproc.Run(t, "--organizations=token", "--bootstrap-token="+file).URL
	s.fails(exitFailed, "^remit: missing_credentials: ", "org", "create", "acme")
	s.good("org", "create", "acme", "--bootstrap-token", file)
	s.env["REMIT_BOOTSTRAP_TOKEN"] = file // as the service has it
	s.good("org", "create", "acme")
}

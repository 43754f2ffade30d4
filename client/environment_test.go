package client_test

import (
	"net/http"
	"strings"
	"testing"

	"remit/client"
)

// setEnvironment sets the variables that the SDK reads, and no others of its own.
func setEnvironment(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, name := range []string{"REMIT_ADDR", "REMIT_API_KEY", "REMIT_AGENT", "REMIT_SECRET", "REMIT_SESSION"} {
		t.Setenv(name, variables[name])
	}
}

func TestSettingsComeFromTheEnvironment(t *testing.T) {
	f := &fake{react: func(_ int, r seen) reaction {
		if strings.HasSuffix(r.path, exchangePath) {
			return pair(1)
		}
		return ok(usageBody)
	}}
	options := client.Options{HTTPClient: &http.Client{Transport: f}}
	setEnvironment(t, map[string]string{
		"REMIT_ADDR": "http://remit.test/behind\n", "REMIT_API_KEY": " rmk_1\n", "REMIT_AGENT": "a1", "REMIT_SECRET": "rms_1\n", "REMIT_SESSION": "s1",
	})
	session, err := client.SessionFromEnv(options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Charge(t.Context(), client.Charge{}); err != nil {
		t.Fatal(err)
	}
	organization, err := client.OrganizationFromEnv(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := organization.EndSession(t.Context(), "s2"); err != nil {
		t.Fatal(err)
	}
	exchange, charge, end := f.requests[0], f.requests[1], f.requests[2]
	if exchange.body != `{"agent_id":"a1","secret":"rms_1"}` || charge.path != "/behind"+actionsPath || end.header.Get("X-API-Key") != "rmk_1" {
		t.Errorf("sent %s, %s, and the key %q", exchange.body, charge.path, end.header.Get("X-API-Key"))
	}
}

func TestMissingVariablesAreNamed(t *testing.T) {
	for _, test := range []struct {
		set  map[string]string
		make func() error
		want string
	}{
		{nil, func() error { _, err := client.FromEnv(client.Options{}); return err }, ""},
		{map[string]string{"REMIT_ADDR": "nowhere"}, func() error { _, err := client.FromEnv(client.Options{}); return err }, "base URL"},
		{nil, func() error { _, err := client.OrganizationFromEnv(client.Options{}); return err }, "set REMIT_API_KEY"},
		{map[string]string{"REMIT_SECRET": " "}, func() error { _, err := client.AgentFromEnv(client.Options{}); return err },
			"set REMIT_AGENT, REMIT_SECRET"},
		{map[string]string{"REMIT_AGENT": "a1"}, func() error { _, err := client.SessionFromEnv(client.Options{}); return err },
			"set REMIT_SECRET, REMIT_SESSION"},
		{map[string]string{"REMIT_API_KEY": "@acme.key"}, func() error { _, err := client.OrganizationFromEnv(client.Options{}); return err },
			"REMIT_API_KEY must be the text itself"},
	} {
		setEnvironment(t, test.set)
		if err := test.make(); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("with %v: %v, want %q", test.set, err, test.want)
		}
	}
}

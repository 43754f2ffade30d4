package client_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"remit/client"
)

// setEnvironment sets the variables that the SDK reads, and no others of its own.
func setEnvironment(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, name := range []string{"REMIT_ADDR", "REMIT_API_KEY", "REMIT_AGENT", "REMIT_SECRET", "REMIT_SESSION",
		"REMIT_KEY_FILE", "REMIT_ASSERTION_FILE", "REMIT_DPOP", "REMIT_RESOURCE", "REMIT_SESSION_KEY"} {
		t.Setenv(name, variables[name])
	}
}

func TestMissingVariablesAreNamed(t *testing.T) {
	var options client.Options
	remit := func() error { return second(client.FromEnv(options)) }
	organization := func() error { return second(client.OrganizationFromEnv(options)) }
	agent := func() error { return second(client.AgentFromEnv(options)) }
	session := func() error { return second(client.SessionFromEnv(options)) }
	for _, test := range []struct {
		set  map[string]string
		make func() error
		want string
	}{
		{nil, remit, ""},
		{map[string]string{"REMIT_ADDR": "nowhere"}, remit, "REMIT_ADDR: the base URL needs http:// or https:// before the host"},
		{map[string]string{"REMIT_ADDR": "127.0.0.1:8080"}, remit, "REMIT_ADDR: the base URL needs http:// or https:// before the host"},
		{map[string]string{"REMIT_ADDR": "redis://h"}, remit, "REMIT_ADDR: base URL redis://h: want https://host"},
		{nil, organization, "set REMIT_API_KEY"},
		{map[string]string{"REMIT_SECRET": " "}, agent, "set REMIT_AGENT, REMIT_SECRET"},
		{map[string]string{"REMIT_AGENT": "a1"}, session, "set REMIT_SECRET, REMIT_SESSION"},
		{map[string]string{"REMIT_AGENT": "a1"}, agent, "set REMIT_SECRET (or REMIT_KEY_FILE or REMIT_ASSERTION_FILE instead of REMIT_SECRET)"},
		{map[string]string{"REMIT_KEY_FILE": "f"}, session, "set REMIT_AGENT, REMIT_SESSION"},
		{map[string]string{"REMIT_AGENT": "a1", "REMIT_SECRET": "s", "REMIT_KEY_FILE": "f"}, agent, "only one of REMIT_SECRET, REMIT_KEY_FILE"},
		{map[string]string{"REMIT_AGENT": "a1", "REMIT_SECRET": "@s"}, agent, "REMIT_SECRET must be the text itself"},
		{map[string]string{"REMIT_AGENT": "a1", "REMIT_SECRET": "s", "REMIT_DPOP": "absent.pem"}, agent, "absent.pem"},
		{map[string]string{"REMIT_API_KEY": "@acme.key"}, organization, "REMIT_API_KEY must be the text itself"},
	} {
		setEnvironment(t, test.set)
		if err := test.make(); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("with %v: %v, want %q", test.set, err, test.want)
		}
	}
}

func TestCredentialsComeFromTheEnvironment(t *testing.T) {
	key := generated(t, client.EdDSA)
	file := filepath.Join(t.TempDir(), "agent.jwk")
	write(t, file, string(key.Text()))
	for _, variables := range []map[string]string{
		{"REMIT_ADDR": "http://remit.test\n", "REMIT_AGENT": " a1\n", "REMIT_KEY_FILE": file + "\n", "REMIT_DPOP": "1", "REMIT_RESOURCE": "urn:b  urn:c"},
		{"REMIT_ADDR": "http://remit.test", "REMIT_AGENT": "a1", "REMIT_KEY_FILE": file, "REMIT_DPOP": file},
	} {
		setEnvironment(t, variables)
		synctest.Test(t, func(t *testing.T) {
			f := &fake{react: describes(inTurn(boundPair(1)))}
			agent := must(client.AgentFromEnv(client.Options{HTTPClient: &http.Client{Transport: f}}))(t)
			token(t, agent)
			r := f.to(oauthPath)[0]
			want := "client_assertion=…&client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer&client_id=a1&grant_type=client_credentials"
			if variables["REMIT_RESOURCE"] != "" {
				want += "&resource=urn:b&resource=urn:c"
			} else {
				proofOf(t, key, r)
			}
			sent(t, r, want)
			if r.header.Get("DPoP") == "" {
				t.Error("there is no proof")
			}
		})
	}
	write(t, file, "e30.e30.a")
	f := &fake{react: inTurn(pair(1))}
	setEnvironment(t, map[string]string{"REMIT_AGENT": "a1", "REMIT_ASSERTION_FILE": file, "REMIT_DPOP": "0"})
	agent := must(client.AgentFromEnv(client.Options{HTTPClient: &http.Client{Transport: f}}))(t)
	token(t, agent)
	sent(t, f.requests[0], "assertion=e30.e30.a&client_id=a1&grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer")
}

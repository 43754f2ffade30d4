package cli_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pemFile is a file with a new Ed25519 key.
func pemFile(t *testing.T) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "agent.pem")
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAnAgentsKeysAudiencesAndProofsAreSetShownAndRemoved(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	file := pemFile(t)
	made := s.good("agent", "create", "deployer", "--no-secret", "--jwks", file, "--audience", "https://a.example/x,y", "--audience", "urn:b", "--dpop-required")
	has(t, made.stdout, `^HAS A SECRET  no$`, `^KEYS +OKP \S{43}$`, `^AUDIENCES +https://a\.example/x,y,urn:b$`, `^PROOFS +required$`)
	if strings.Contains(made.stdout, "SECRET ") && strings.Contains(made.stdout, "rms_") || made.stderr != "" {
		t.Errorf("a secret is shown: %s%s", made.stdout, made.stderr)
	}
	id := document[[]struct{ ID string }](s.good("agent", "list", "--json"))[0].ID
	shown := s.object("agent", "show", id)
	if keys, _ := json.Marshal(shown["jwks"]); strings.Contains(string(keys), `"d"`) || shown["has_secret"] != false || shown["dpop_required"] != true {
		t.Errorf("%v", shown)
	}
	has(t, s.good("agent", "update", id, "--audience=", "--no-dpop-required", "--jwks-uri", "https://keys.example/jwks").stdout,
		`^KEYS AT +https://keys\.example/jwks$`, `^AUDIENCES +the service alone$`)
	for _, line := range []string{"KEYS AT", "AUDIENCES", "PROOFS"} {
		if text := s.good("agent", "update", id, "--remove", "jwks_uri,audiences").stdout; strings.Contains(text, line) {
			t.Errorf("%s is left: %s", line, text)
		}
	}
	for want, arguments := range map[string][]string{
		"cannot be used":             {"agent", "update", id, "--jwks", os.DevNull},
		"no such file":               {"agent", "update", id, "--jwks", file + "x"},
		"set at least one of --name": {"agent", "update", id},
		`"scopes"`:                   {"agent", "update", id, "--remove", "scopes"},
	} {
		if r := s.run(arguments...); r.exit == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: exit %d: %s, want %s", arguments, r.exit, r.stderr, want)
		}
	}
}

func TestTrustedIssuersAreCreatedChangedAndDeleted(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	agent := s.object("agent", "create", "builder")["id"].(string)
	rule := agent + ":sub=repo:acme/shop:*,environment=production"
	made := s.good("trusted-issuer", "create", "https://ci.example", "--jwks", pemFile(t), "--rule", rule, "--description", "builds")
	has(t, made.stdout, `^ISSUER +https://ci\.example$`, `^KEYS +OKP \S{43}$`, `^DESCRIPTION +builds$`,
		`^AGENT `+agent+` +environment=production, sub=repo:acme/shop:\*$`)
	has(t, s.good("trusted-issuer", "list").stdout, `^ID +ISSUER +KEYS AT +RULES +CREATED$`, `https://ci\.example +1 `)
	id := document[[]struct{ ID string }](s.good("trusted-issuer", "list", "--json"))[0].ID
	has(t, s.good("trusted-issuer", "update", id, "--jwks-uri", "https://ci.example/keys", "--rule", agent+":sub=x", "--rule", agent+":sub=y", "--description=").stdout,
		`^KEYS AT +https://ci\.example/keys$`, `^AGENT \S+ +sub=x$`, `^AGENT \S+ +sub=y$`)
	withComma := fmt.Sprintf(`{"agent_id": %q, "claims": {"sub": "CN=builder,O=acme"}}`, agent)
	has(t, s.good("trusted-issuer", "update", id, "--rule", withComma).stdout, `^AGENT \S+ +sub=CN=builder,O=acme$`)
	if r := s.run("trusted-issuer", "create", "https://ci.example", "--jwks", pemFile(t), "--rule", rule); r.exit != exitFailed || !strings.HasPrefix(r.stderr, "remit: issuer_exists: ") {
		t.Errorf("twice: exit %d: %s", r.exit, r.stderr)
	}
	has(t, s.good("trusted-issuer", "delete", id).stdout, `^TRUSTED ISSUER +`+id+`$`, `^STATUS +deleted$`)
	if r := s.run("trusted-issuer", "show", id); r.exit != exitFailed || !strings.HasPrefix(r.stderr, "remit: not_found") {
		t.Errorf("deleted: exit %d: %s", r.exit, r.stderr)
	}
	for _, wrong := range []string{"", agent, agent + ":sub", agent + ":=x", ":sub=x", agent + ":sub=x,sub=y", agent + ":sub=x,y",
		"{", withComma + "{", `{"claims": {"sub": "x"}}`, fmt.Sprintf(`{"agent_id": %q}`, agent), fmt.Sprintf(`{"agent_id": %q, "claims": {"sub": "x"}, "more": 1}`, agent)} {
		if r := s.run("trusted-issuer", "update", id, "--rule", wrong); r.exit != exitUsage || !strings.Contains(r.stderr, "must be AGENT:CLAIM=VALUE") {
			t.Errorf("%q: exit %d: %s", wrong, r.exit, r.stderr)
		}
	}
	if r := s.run("trusted-issuer", "create", "https://ci.example", "--rule", rule); r.exit != exitUsage || !strings.Contains(r.stderr, "either --jwks or --jwks-uri") {
		t.Errorf("without keys: exit %d: %s", r.exit, r.stderr)
	}
}

func TestTokensComeFromAKeyForAnAudience(t *testing.T) {
	t.Parallel()
	s, file := ofOrganization(t), pemFile(t)
	id := s.object("agent", "create", "deployer", "--no-secret", "--jwks", file, "--scopes", "deploy,read", "--audience", "urn:b")["id"].(string)
	agent := s.with(t, map[string]string{"REMIT_AGENT": id, "REMIT_KEY_FILE": file, "REMIT_RESOURCE": "urn:b", "REMIT_API_KEY": ""})
	access := agent.object("token", "--scopes", "deploy")["access_token"].(string)
	agent.stdin = access
	has(t, agent.good("token", "verify", "--audience", "urn:b", "--scope", "deploy").stdout, `^AGENT +`+id+`$`, `^SCOPES +deploy$`)
	if r := agent.run("token", "verify"); r.exit != exitFailed || !strings.HasPrefix(r.stderr, "remit: invalid_token") {
		t.Errorf("for the service itself: exit %d: %s", r.exit, r.stderr)
	}
	if r := agent.run("token", "verify", "--audience", "urn:b", "--scope", "read"); r.exit != exitFailed || !strings.HasPrefix(r.stderr, "remit: insufficient_scope") {
		t.Errorf("for another scope: exit %d: %s", r.exit, r.stderr)
	}
	s.stdin = access
	has(t, s.good("token", "inspect").stdout, `^AUDIENCE +urn:b$`)
	if r := agent.run("token", "--resource", "urn:c"); r.exit != exitFailed || !strings.HasPrefix(r.stderr, "remit: invalid_target") {
		t.Errorf("for another audience: exit %d: %s", r.exit, r.stderr)
	}
	for want, arguments := range map[string][]string{
		"use only one of":        {"token", "--secret", "s", "--key-file", file},
		"cannot be used":         {"token", "--key-file", os.DevNull},
		"ends with this command": {"token", "--dpop", "1"},
	} {
		if r := agent.run(arguments...); r.exit != exitFailed || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: exit %d: %s", arguments, r.exit, r.stderr)
		}
	}
}

func TestAnAgentProvesItsKey(t *testing.T) {
	t.Parallel()
	s, file := ofOrganization(t), pemFile(t)
	made := s.object("agent", "create", "scout", "--dpop-required")
	id := made["id"].(string)
	session := s.object("session", "create", id)["id"].(string)
	agent := s.with(t, map[string]string{"REMIT_AGENT": id, "REMIT_SECRET": made["secret"].(string), "REMIT_API_KEY": ""})
	if r := agent.run("charge", session); r.exit != exitFailed || !strings.Contains(r.stderr, "set REMIT_DPOP, or use --dpop=FILE") {
		t.Errorf("without a key: exit %d: %s", r.exit, r.stderr)
	}
	agent.good("charge", session, "--dpop", "1")
	agent.env["REMIT_DPOP"] = file
	agent.good("charge", session)
	got := agent.good("token")
	has(t, got.stdout, `^BOUND TO +\S{43}$`)
	access := strings.Fields(strings.SplitAfter(got.stdout, "ACCESS TOKEN")[1])[0]
	s.stdin = access
	has(t, s.good("token", "inspect").stdout, `^BOUND TO +\S{43}$`)
	if r := s.run("token", "verify"); r.exit != exitFailed {
		t.Errorf("a bound token is a bearer token: %s", r.stdout)
	}
}

func TestAWorkloadsTokenIsExchanged(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	id := s.object("agent", "create", "builder", "--no-secret")["id"].(string)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("e30.e30.c2ln"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := s.run("token", "--agent", id, "--assertion-file", token); r.exit != exitFailed || !strings.HasPrefix(r.stderr, "remit: invalid_grant") {
		t.Errorf("of a platform that is not trusted: exit %d: %s", r.exit, r.stderr)
	}
}

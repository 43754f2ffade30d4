package cli_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
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
	if r := s.run("trusted-issuer", "create", "https://ci.example", "--jwks", pemFile(t), "--rule", rule); r.exit != exitFailed || !strings.HasPrefix(r.stderr, "remit: issuer_exists: ") {
		t.Errorf("twice: exit %d: %s", r.exit, r.stderr)
	}
	has(t, s.good("trusted-issuer", "delete", id).stdout, `^TRUSTED ISSUER +`+id+`$`, `^STATUS +deleted$`)
	if r := s.run("trusted-issuer", "show", id); r.exit != exitFailed || !strings.HasPrefix(r.stderr, "remit: not_found") {
		t.Errorf("deleted: exit %d: %s", r.exit, r.stderr)
	}
	for _, wrong := range []string{"", agent, agent + ":sub", agent + ":=x", ":sub=x", agent + ":sub=x,sub=y", agent + ":sub=x,y"} {
		if r := s.run("trusted-issuer", "update", id, "--rule", wrong); r.exit != exitUsage || !strings.Contains(r.stderr, "must be AGENT:CLAIM=VALUE") {
			t.Errorf("%q: exit %d: %s", wrong, r.exit, r.stderr)
		}
	}
	if r := s.run("trusted-issuer", "create", "https://ci.example", "--rule", rule); r.exit != exitUsage || !strings.Contains(r.stderr, "either --jwks or --jwks-uri") {
		t.Errorf("without keys: exit %d: %s", r.exit, r.stderr)
	}
}

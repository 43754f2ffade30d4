package cli_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"testing"
)

// pemFile is a file with a new Ed25519 key.
func pemFile(t *testing.T) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(0, err)(t)
	raw := must(x509.MarshalPKCS8PrivateKey(private))(t)
	return written(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
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
	s.fails(exitFailed, "cannot be used", "agent", "update", id, "--jwks", os.DevNull)
	s.fails(exitFailed, "no such file", "agent", "update", id, "--jwks", file+"x")
	s.fails(exitUsage, "set at least one of --name", "agent", "update", id)
	s.fails(exitUsage, `"scopes"`, "agent", "update", id, "--remove", "scopes")
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
	has(t, s.good("trusted-issuer", "delete", id).stdout, `^TRUSTED ISSUER +`+id+`$`, `^STATUS +deleted$`)
	s.fails(exitFailed, "^remit: not_found", "trusted-issuer", "show", id)
	for _, wrong := range []string{"", agent, agent + ":sub", agent + ":=x", ":sub=x", agent + ":sub=x,sub=y", agent + ":sub=x,y",
		"{", withComma + "{", `{"claims": {"sub": "x"}}`, fmt.Sprintf(`{"agent_id": %q}`, agent), fmt.Sprintf(`{"agent_id": %q, "claims": {"sub": "x"}, "more": 1}`, agent)} {
		s.fails(exitUsage, "must be AGENT:CLAIM=VALUE", "trusted-issuer", "update", id, "--rule", wrong)
	}
	s.fails(exitUsage, "either --jwks or --jwks-uri", "trusted-issuer", "create", "https://ci.example", "--rule", rule)
}

func TestTokensComeFromAKeyOrAWorkloadsToken(t *testing.T) {
	t.Parallel()
	s, file := ofOrganization(t), pemFile(t)
	id := s.object("agent", "create", "deployer", "--no-secret", "--jwks", file, "--scopes", "deploy,read", "--audience", "urn:b")["id"].(string)
	agent := s.with(t, map[string]string{"REMIT_AGENT": id, "REMIT_KEY_FILE": file, "REMIT_RESOURCE": "urn:b", "REMIT_API_KEY": ""})
	access := agent.object("token", "--scopes", "deploy")["access_token"].(string)
	agent.stdin = access
	has(t, agent.good("token", "verify", "--audience", "urn:b", "--scope", "deploy").stdout, `^AGENT +`+id+`$`, `^SCOPES +deploy$`)
	agent.fails(exitFailed, "^remit: invalid_token", "token", "verify")
	agent.fails(exitFailed, "^remit: insufficient_scope", "token", "verify", "--audience", "urn:b", "--scope", "read")
	s.stdin = access
	has(t, s.good("token", "inspect").stdout, `^AUDIENCE +urn:b$`)
	agent.fails(exitFailed, "^remit: invalid_target", "token", "--resource", "urn:c")
	s.fails(exitFailed, "^remit: invalid_grant", "token", "--agent", id, "--assertion-file", written(t, "e30.e30.c2ln"))
	agent.fails(exitFailed, "use only one of", "token", "--secret", "s", "--key-file", file)
	agent.fails(exitFailed, "cannot be used", "token", "--key-file", os.DevNull)
	agent.fails(exitFailed, "ends with this command", "token", "--dpop", "1")
}

func TestAnAgentProvesItsKey(t *testing.T) {
	t.Parallel()
	s, file := ofOrganization(t), pemFile(t)
	made := s.object("agent", "create", "scout", "--dpop-required")
	id := made["id"].(string)
	session := s.object("session", "create", id)["id"].(string)
	agent := s.with(t, map[string]string{"REMIT_AGENT": id, "REMIT_SECRET": made["secret"].(string), "REMIT_API_KEY": ""})
	agent.fails(exitFailed, "set REMIT_DPOP, or use --dpop=FILE", "charge", session)
	agent.good("charge", session, "--dpop", "1")
	agent.env["REMIT_DPOP"] = file
	agent.good("charge", session)
	got := agent.good("token")
	has(t, got.stdout, `^BOUND TO +\S{43}$`)
	access := strings.Fields(strings.SplitAfter(got.stdout, "ACCESS TOKEN")[1])[0]
	s.stdin = access
	has(t, s.good("token", "inspect").stdout, `^BOUND TO +\S{43}$`)
	s.fails(exitFailed, "", "token", "verify") // as a bearer token
}

package interop

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"remit/test/tool"
)

const (
	nodeDir       = "node"
	scriptTimeout = time.Minute
)

// runNode runs a script with node in the directory of its libraries and returns its output.
func runNode(t *testing.T, settings []string, stdin string, args ...string) string {
	t.Helper()
	tool.Reads(t, nodeDir)
	tool.Install(t, nodeDir)
	node := tool.Path(t, "node")
	ctx, cancel := context.WithTimeout(t.Context(), scriptTimeout)
	defer cancel()
	version := must(exec.CommandContext(ctx, node, "--version").Output())(t)
	if strings.HasPrefix(string(version), "v18.") { // Debian 12 has Node 18, where WebCrypto needs a flag
		args = append([]string{"--experimental-global-webcrypto"}, args...)
	}
	script := exec.CommandContext(ctx, node, args...)
	script.Dir, script.WaitDelay = nodeDir, time.Second
	script.Env = append([]string{"PATH=" + os.Getenv("PATH")}, settings...)
	script.Stdin = strings.NewReader(stdin)
	output, err := script.CombinedOutput()
	if err != nil {
		t.Fatalf("node %s: %v\n%s", strings.Join(args, " "), err, tool.Indented(output))
	}
	return string(output)
}

// clientSettings returns the environment of a script: the service's address and the client's credentials.
func (o organization) clientSettings(a agent, algorithm string) []string {
	return []string{"REMIT_ADDR=" + o.service.URL, "CLIENT_ID=" + a.ID, "CLIENT_SECRET=" + a.Secret,
		"ORGANIZATION_ID=" + o.ID, "API_KEY=" + o.Key, "ALGORITHM=" + algorithm}
}

func TestJavaScriptClientsWorkUnchanged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ script, algorithm string }{
		"oauth4webapi":          {"oauth4webapi.test.mjs", "EdDSA"},
		"oauth4webapi identity": {"oauth4webapi-identity.test.mjs", "EdDSA"},
		"openid-client":         {"openid-client.test.mjs", "EdDSA"},
		"MCP SDK client":        {"mcp.test.mjs", "EdDSA"},
		"MCP SDK server":        {"mcp-server.test.mjs", "EdDSA"},
		"resource servers":      {"resource-server.test.mjs", "EdDSA"},
		"jose verifies Ed25519": {"jose.test.mjs", "EdDSA"},
		"jose verifies ES256":   {"jose.test.mjs", "ES256"},
		"jose verifies RS256":   {"jose.test.mjs", "RS256"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			org := newOrganization(t, serviceSigning(t, tc.algorithm))
			scout := org.newAgent(t, "read", "write")
			runNode(t, org.clientSettings(scout, tc.algorithm), "", "--test-reporter=spec", tc.script)
		})
	}
}

func TestTheLockFileNamesNoRegistry(t *testing.T) {
	t.Parallel()
	tool.LockNamesNoRegistry(t, nodeDir)
}

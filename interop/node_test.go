package interop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	nodeDir        = "node"
	scriptPatience = time.Minute
	npmPatience    = 5 * time.Minute
)

// npmInstall installs what node/package-lock.json names, once for each state of that file.
var npmInstall = sync.OnceValue(func() error {
	lock, err := os.ReadFile(filepath.Join(nodeDir, "package-lock.json"))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(lock)
	want, stamp := hex.EncodeToString(sum[:]), filepath.Join(nodeDir, "node_modules", ".installed")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), npmPatience)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--prefer-offline")
	install.Dir, install.WaitDelay = nodeDir, time.Second
	if output, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci, which needs a package registry or a warm cache: %w\n%s", err, indented(output))
	}
	return os.WriteFile(stamp, []byte(want), 0o644)
})

// runNode runs a script with node in the directory of its libraries and returns what it prints.
func runNode(t *testing.T, settings []string, stdin string, args ...string) string {
	t.Helper()
	node := tool(t, "node")
	tool(t, "npm")
	if err := npmInstall(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptPatience)
	defer cancel()
	version, err := exec.CommandContext(ctx, node, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(string(version), "v18.") { // Debian 12 has it; it keeps WebCrypto behind a flag
		args = append([]string{"--experimental-global-webcrypto"}, args...)
	}
	script := exec.CommandContext(ctx, node, args...)
	script.Dir, script.WaitDelay = nodeDir, time.Second
	script.Env = append([]string{"PATH=" + os.Getenv("PATH")}, settings...)
	script.Stdin = strings.NewReader(stdin)
	output, err := script.CombinedOutput()
	if err != nil {
		t.Fatalf("node %s: %v\n%s", strings.Join(args, " "), err, indented(output))
	}
	return string(output)
}

// clientSettings tell a script where the service is and who it is there.
func (o organization) clientSettings(a agent, algorithm string) []string {
	return []string{"REMIT_URL=" + o.service.URL, "CLIENT_ID=" + a.ID, "CLIENT_SECRET=" + a.Secret,
		"ORGANIZATION_ID=" + o.ID, "ALGORITHM=" + algorithm}
}

func TestJavaScriptClientsWorkUnchanged(t *testing.T) {
	t.Parallel()
	onShared := func(t *testing.T, _ string) *service { return sharedService(t) }
	for name, tc := range map[string]struct {
		script, algorithm string
		start             func(*testing.T, string) *service
	}{
		"oauth4webapi":          {"oauth4webapi.test.mjs", "EdDSA", onShared},
		"MCP SDK":               {"mcp.test.mjs", "EdDSA", onShared},
		"jose verifies Ed25519": {"jose.test.mjs", "EdDSA", onShared},
		"jose verifies ES256":   {"jose.test.mjs", "ES256", startServiceSigning},
		"jose verifies RS256":   {"jose.test.mjs", "RS256", startServiceSigning},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			org := newOrganization(t, tc.start(t, tc.algorithm))
			scout := org.newAgent(t, "read", "write")
			runNode(t, org.clientSettings(scout, tc.algorithm), "", "--test-reporter=spec", tc.script)
		})
	}
}

func TestTheLockFileNamesNoRegistry(t *testing.T) {
	t.Parallel()
	lock, err := os.ReadFile(filepath.Join(nodeDir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(lock), `"resolved"`) {
		t.Error("node/package-lock.json has resolved URLs: write it with npm install, in node/, where .npmrc leaves them out")
	}
}

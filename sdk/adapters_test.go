package sdk

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"remit/test/serviceproc"
	"remit/test/suite"
)

const adaptersDir = "adapters"

// This test makes calls with the frameworks' own packages, and compares the session's usage with the ledger of a provider.
func TestTheAdaptersPassTheirTests(t *testing.T) {
	t.Parallel()
	buildAdapters(t)
	binary := must(serviceproc.Program())(t)
	calls, timeout := "20", nodeTimeout
	if suite.Long {
		calls, timeout = "5000", 40*time.Minute // they take 5 minutes on two free cores, and 20 on two that are slow and busy
	}
	runNodeTests(t, adaptersDir, "*.test.js", timeout, []string{
		"REMIT_ADDR=" + serviceproc.Run(t).URL, startFakeProvider(t), "REMIT_BINARY=" + binary, "REMIT_CALLS=" + calls,
	})
}

// The README names the versions of the frameworks that were run: the last of each is the installed one, and the first is the lowest
// that the peers allow.
func TestTheAdaptersNameTheVersionsThatWereRun(t *testing.T) {
	t.Parallel()
	var manifest struct {
		PeerDependencies, DevDependencies map[string]string
	}
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	readJSON(t, "package.json", &manifest)
	readJSON(t, "package-lock.json", &lock)
	readme := must(os.ReadFile(filepath.Join(adaptersDir, "README.md")))(t)
	_, table, _ := strings.Cut(string(readme), "\n## Versions\n")
	run := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([0-9., ]+) \\|$").FindAllStringSubmatch(table, -1) {
		run[row[1]] = strings.Split(row[2], ", ")
	}
	for name := range manifest.DevDependencies {
		if name == "typescript" || name == "zod" || strings.HasPrefix(name, "@types/") {
			continue
		}
		versions := run[name]
		if installed := lock.Packages["node_modules/"+name].Version; len(versions) == 0 || versions[len(versions)-1] != installed {
			t.Errorf("the README says that %s was run in %q, and %s is installed", name, versions, installed)
			continue
		}
		if peer, isPeer := manifest.PeerDependencies[name]; isPeer && peer != "^"+versions[0] {
			t.Errorf("the peer %s is %s, and the lowest version that was run is %s", name, peer, versions[0])
		}
	}
}

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	noError(t, json.Unmarshal(must(os.ReadFile(filepath.Join(adaptersDir, name)))(t), into))
}

// npm and setuptools pack the licence that lies beside the manifest, and no other.
func TestThePackagesHaveTheLicense(t *testing.T) {
	t.Parallel()
	license := must(os.ReadFile(filepath.Join("..", "LICENSE")))(t)
	for _, dir := range []string{typeScriptDir, adaptersDir, "python"} {
		if packed, err := os.ReadFile(filepath.Join(dir, "LICENSE")); err != nil || !bytes.Equal(packed, license) {
			t.Errorf("%s has another licence: %v", dir, err)
		}
	}
}

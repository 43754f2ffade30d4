package sdk

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"remit/test/serviceproc"
	"remit/test/suite"
	"remit/test/tool"
)

const adaptersDir = "adapters"

// This test makes calls with the frameworks' own packages, and compares the session's books with the ledger of a provider.
func TestTheAdaptersPassTheirTests(t *testing.T) {
	t.Parallel()
	buildAdapters(t)
	binary, err := serviceproc.Program()
	if err != nil {
		t.Fatal(err)
	}
	calls, timeout := "20", nodeTimeout
	if suite.Long {
		calls, timeout = "5000", 20*time.Minute
	}
	runNodeTests(t, adaptersDir, "*.test.js", timeout, []string{
		"REMIT_ADDR=" + serviceproc.Run(t).URL, startFakeProvider(t), "REMIT_BINARY=" + binary, "REMIT_CALLS=" + calls,
	})
}

var adapters struct {
	build sync.Once
	built bool
}

// buildAdapters builds the adapters and their tests, once.
func buildAdapters(t *testing.T) {
	t.Helper()
	buildTypeScript(t)
	adapters.build.Do(func() {
		tool.Install(t, adaptersDir)
		for _, made := range []string{"dist", "build"} { // remove the output of deleted sources
			if err := os.RemoveAll(filepath.Join(adaptersDir, made)); err != nil {
				t.Fatal(err)
			}
		}
		inNodeDir(t, adaptersDir, nodeTimeout, nil, "npm", "run", "build")
		inNodeDir(t, adaptersDir, nodeTimeout, nil, "npm", "run", "build:test")
		adapters.built = true
	})
	if !adapters.built {
		t.Fatal("the adapters do not build; another test has the reason")
	}
}

func TestTheAdaptersLockFileNamesNoRegistry(t *testing.T) {
	t.Parallel()
	tool.LockNamesNoRegistry(t, adaptersDir)
}

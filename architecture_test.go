package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImportsFollowTheArchitecture checks which package of the project imports which, as docs/architecture.md says.
func TestImportsFollowTheArchitecture(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{
		"remit":                       {"remit/internal/cli", "remit/console", "remit/internal/jwksfetch", "remit/internal/keys", "remit/money", "remit/internal/redisproc", "remit/redisstore", "remit/server", "remit/internal/token", "remit/internal/webhook"},
		"remit/test/browser":       {},
		"remit/console":               {"remit/internal/chart", "remit/client", "remit/money", "remit/redisstore", "remit/server"},
		"remit/internal/keys":                  {"remit/redisstore", "remit/internal/token"},
		"remit/internal/cli":                   {"remit/internal/auditlog", "remit/client", "remit/client/prices", "remit/money"},
		"remit/internal/auditlog":              {},
		"remit/server":                {"remit/internal/jwksfetch", "remit/internal/metrics", "remit/money", "remit/openapi", "remit/internal/outbound", "remit/redisstore", "remit/server/conn", "remit/internal/token", "remit/internal/webhook"},
		"remit/internal/webhook":               {"remit/internal/outbound", "remit/redisstore", "remit/internal/token"},
		"remit/internal/jwksfetch":             {"remit/internal/outbound", "remit/internal/token"},
		"remit/internal/outbound":              {},
		"remit/server/conn":           {},
		"remit/redisstore":            {"remit/lua", "remit/money", "remit/internal/redisclient"},
		"remit/internal/redisclient":           {"remit/internal/metrics"},
		"remit/openapi":               {},
		"remit/internal/token":                 {},
		"remit/lua":                   {},
		"remit/internal/metrics":               {},
		"remit/money":                 {},
		"remit/internal/redisproc":             {},
		"remit/test/serviceproc":  {},
		"remit/test/prover":       {},
		"remit/test/fakeprovider": {},
		"remit/test/suite":        {},
		"remit/test/testreport":   {},
		"remit/test/tool":         {},
		"remit/client":                {"remit/money"},
		"remit/remittest":             {"remit/client", "remit/redisstore", "remit/server", "remit/internal/token"},
		"remit/client/mcp":            {"remit/client", "remit/money"},
		"remit/client/metered":        {"remit/client", "remit/client/prices", "remit/money"},
		"remit/client/prices":         {"remit/money"},
		"remit/internal/chart":                 {},
		"remit/internal/plot":                  {},
		"remit/loadtest":              {"remit/internal/plot", "remit/client", "remit/lua", "remit/money", "remit/internal/redisproc"},
		"remit/bench":                 {},
		"remit/bench/bare":            {},
		"remit/test/interop":               {},
		"remit/test/faults":                {"remit/internal/auditlog", "remit/client", "remit/test/serviceproc", "remit/money", "remit/internal/redisproc"},
		"remit/test/hostile":      {},
		"remit/sdk":                   {},
		"remit/test/redistest":    {"remit/internal/redisproc"},
		"remit/test/same":         {"remit/client", "remit/client/metered", "remit/client/prices", "remit/money"},

		"remit/deploy":       {},
		"remit/test/release":      {},
		"remit/scripts/sbom": {},

		"remit/deploy/monitoring": {},

		"remit/test/conformance": {"remit/openapi"},
		"remit/test/sdkcodes":    {"remit/openapi"},
		"remit/openapi/samples/go":   {"remit/client", "remit/money"},

		"remit/bench/report": {"remit/internal/plot", "remit/internal/redisproc"},
	}
	output, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...", "remit/client/...", "remit/money/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(output)) {
		imports := strings.Fields(line)
		mayImport, known := allowed[imports[0]]
		if !known {
			t.Errorf("%s is a new package: say here what it may import, and why in docs/architecture.md", imports[0])
		}
		for _, imported := range imports[1:] {
			if strings.HasPrefix(imported, "remit") && !slices.Contains(mayImport, imported) {
				t.Errorf("%s must not import %s", imports[0], imported)
			}
		}
	}
}

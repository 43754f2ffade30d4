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
		"remit":                       {"remit/cli", "remit/console", "remit/jwksfetch", "remit/keys", "remit/money", "remit/redisproc", "remit/redisstore", "remit/server", "remit/token", "remit/webhook"},
		"remit/console/browser":       {},
		"remit/console":               {"remit/chart", "remit/client", "remit/money", "remit/redisstore", "remit/server"},
		"remit/keys":                  {"remit/redisstore", "remit/token"},
		"remit/cli":                   {"remit/auditlog", "remit/client", "remit/client/prices", "remit/money"},
		"remit/auditlog":              {},
		"remit/server":                {"remit/jwksfetch", "remit/metrics", "remit/money", "remit/openapi", "remit/outbound", "remit/redisstore", "remit/server/conn", "remit/token", "remit/webhook"},
		"remit/webhook":               {"remit/outbound", "remit/redisstore", "remit/token"},
		"remit/jwksfetch":             {"remit/outbound", "remit/token"},
		"remit/outbound":              {},
		"remit/server/conn":           {},
		"remit/redisstore":            {"remit/lua", "remit/money", "remit/redisclient"},
		"remit/redisclient":           {"remit/metrics"},
		"remit/openapi":               {},
		"remit/token":                 {},
		"remit/lua":                   {},
		"remit/metrics":               {},
		"remit/money":                 {},
		"remit/redisproc":             {},
		"remit/internal/serviceproc":  {},
		"remit/internal/prover":       {},
		"remit/internal/fakeprovider": {},
		"remit/internal/suite":        {},
		"remit/internal/testreport":   {},
		"remit/internal/tool":         {},
		"remit/client":                {"remit/money"},
		"remit/remittest":             {"remit/client", "remit/redisstore", "remit/server", "remit/token"},
		"remit/client/mcp":            {"remit/client", "remit/money"},
		"remit/client/metered":        {"remit/client", "remit/client/prices", "remit/money"},
		"remit/client/prices":         {"remit/money"},
		"remit/chart":                 {},
		"remit/plot":                  {},
		"remit/loadtest":              {"remit/plot", "remit/client", "remit/lua", "remit/money", "remit/redisproc"},
		"remit/bench":                 {},
		"remit/bench/bare":            {},
		"remit/interop":               {},
		"remit/faults":                {"remit/auditlog", "remit/client", "remit/internal/serviceproc", "remit/money", "remit/redisproc"},
		"remit/internal/hostile":      {},
		"remit/sdk":                   {},
		"remit/internal/redistest":    {"remit/redisproc"},
		"remit/internal/same":         {"remit/client", "remit/client/metered", "remit/client/prices", "remit/money"},

		"remit/deploy":       {},
		"remit/release":      {},
		"remit/release/sbom": {},

		"remit/deploy/monitoring": {},

		"remit/internal/conformance": {"remit/openapi"},
		"remit/internal/sdkcodes":    {"remit/openapi"},
		"remit/openapi/samples/go":   {"remit/client", "remit/money"},

		"remit/bench/report": {"remit/plot", "remit/redisproc"},
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

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
		"remit":                           {"remit/internal/service"},
		"remit/internal/service":          {"remit/console", "remit/internal/cli", "remit/internal/jwksfetch", "remit/internal/keys", "remit/internal/redisproc", "remit/internal/service/operator", "remit/internal/token", "remit/internal/webhook", "remit/money", "remit/redisstore", "remit/server"},
		"remit/internal/service/operator": {"remit/internal/cli", "remit/internal/token", "remit/redisstore"},
		"remit/console":                   {"remit/client", "remit/internal/chart", "remit/money", "remit/redisstore", "remit/server"},
		"remit/server":                    {"remit/internal/jwksfetch", "remit/internal/metrics", "remit/internal/outbound", "remit/internal/token", "remit/internal/webhook", "remit/money", "remit/openapi", "remit/redisstore", "remit/server/conn"},
		"remit/server/conn":               {},
		"remit/redisstore":                {"remit/internal/redisclient", "remit/lua", "remit/money"},
		"remit/lua":                       {},
		"remit/openapi":                   {},
		"remit/money":                     {},

		"remit/internal/cli":         {"remit/client", "remit/client/prices", "remit/internal/auditlog", "remit/money"},
		"remit/internal/auditlog":    {},
		"remit/internal/keys":        {"remit/internal/token", "remit/redisstore"},
		"remit/internal/token":       {},
		"remit/internal/webhook":     {"remit/internal/outbound", "remit/internal/token", "remit/redisstore"},
		"remit/internal/jwksfetch":   {"remit/internal/outbound", "remit/internal/token"},
		"remit/internal/outbound":    {},
		"remit/internal/redisclient": {"remit/internal/metrics"},
		"remit/internal/redisproc":   {},
		"remit/internal/metrics":     {},
		"remit/internal/chart":       {},
		"remit/internal/plot":        {},

		"remit/client":             {"remit/money"},
		"remit/client/mcp":         {"remit/client", "remit/money"},
		"remit/client/metered":     {"remit/client", "remit/client/prices", "remit/money"},
		"remit/client/prices":      {"remit/money"},
		"remit/remittest":          {"remit/client", "remit/internal/token", "remit/redisstore", "remit/server"},
		"remit/openapi/samples/go": {"remit/client", "remit/money"},

		"remit/loadtest":          {"remit/client", "remit/internal/plot", "remit/internal/redisproc", "remit/lua", "remit/money"},
		"remit/bench":             {},
		"remit/bench/bare":        {},
		"remit/bench/report":      {"remit/internal/plot", "remit/internal/redisproc"},
		"remit/deploy":            {},
		"remit/deploy/monitoring": {},
		"remit/scripts/sbom":      {},
		"remit/sdk":               {},

		"remit/test/browser":      {},
		"remit/test/conformance":  {"remit/openapi"},
		"remit/test/docs":         {},
		"remit/test/fakeprovider": {},
		"remit/test/faults":       {"remit/client", "remit/internal/auditlog", "remit/internal/redisproc", "remit/money", "remit/test/serviceproc"},
		"remit/test/hostile":      {},
		"remit/test/interop":      {},
		"remit/test/prover":       {},
		"remit/test/redistest":    {"remit/internal/redisproc"},
		"remit/test/release":      {},
		"remit/test/same":         {"remit/client", "remit/client/metered", "remit/client/prices", "remit/money"},
		"remit/test/sdkcodes":     {"remit/openapi"},
		"remit/test/serviceproc":  {},
		"remit/test/suite":        {},
		"remit/test/testreport":   {},
		"remit/test/tool":         {},
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

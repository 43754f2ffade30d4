package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remit/test/tool"
)

const lintDir = "lint"

// lint returns the number of errors and warnings that the linter finds in a file, and its report.
func lint(t *testing.T, file string) (findings int, report string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	linter := exec.CommandContext(ctx, tool.Path(t, "node"), "node_modules/@redocly/cli/bin/cli.js", "lint", "--config", "redocly.yaml",
		"--format", "json", file)
	linter.Dir, linter.WaitDelay = lintDir, time.Second
	linter.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	var diagnostics strings.Builder
	linter.Stderr = &diagnostics
	output, err := linter.Output()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) { // the linter exits with an error if it found some
		t.Fatal(err)
	}
	var found struct {
		Totals *struct{ Errors, Warnings int }
	}
	if err := json.Unmarshal(output, &found); err != nil || found.Totals == nil {
		t.Fatalf("the linter printed %s %s (%v)", output, diagnostics.String(), err)
	}
	return found.Totals.Errors + found.Totals.Warnings, string(output)
}

func TestTheLinterReportsNothing(t *testing.T) {
	t.Parallel()
	tool.Reads(t, lintDir)
	tool.Install(t, lintDir)
	if findings, report := lint(t, "../openapi.json"); findings > 0 {
		t.Errorf("%d findings: %s", findings, report)
	}
	broken := filepath.Join(t.TempDir(), "broken.json") // with an example that violates its schema
	text := strings.Replace(string(description), `"max_actions": 2,`, `"max_actions": "2",`, 1)
	if text == string(description) {
		t.Fatal("openapi.json no longer has the example that this test breaks")
	}
	noError(t, os.WriteFile(broken, []byte(text), 0o600))
	if findings, _ := lint(t, broken); findings == 0 {
		t.Error("the linter accepts an example of the wrong type")
	}
}

func TestTheLockFileNamesNoRegistry(t *testing.T) {
	t.Parallel()
	tool.LockNamesNoRegistry(t, lintDir)
}

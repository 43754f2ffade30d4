package openapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	lintDir     = "lint"
	npmPatience = 5 * time.Minute
)

// tool returns the path of a program that the tests need. Where it is missing the test fails, or skips under -short.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if testing.Short() {
		t.Skipf("%s is not installed", name)
	}
	t.Fatalf("%s is not installed; scripts/install-tools.sh installs it", name)
	return ""
}

// installLinter installs what lint/package-lock.json names, unless that was done.
func installLinter(t *testing.T) {
	t.Helper()
	npm := tool(t, "npm")
	lock, err := os.ReadFile(filepath.Join(lintDir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(lock)
	want, stamp := hex.EncodeToString(sum[:]), filepath.Join(lintDir, "node_modules", ".installed")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), npmPatience)
	defer cancel()
	install := exec.CommandContext(ctx, npm, "ci", "--prefer-offline")
	install.Dir, install.WaitDelay = lintDir, time.Second
	if output, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci, which needs a package registry or a warm cache: %v\n%s", err, output)
	}
	if err := os.WriteFile(stamp, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// lint returns how many errors and warnings the linter finds in a file, and what it says.
func lint(t *testing.T, file string) (findings int, report string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	linter := exec.CommandContext(ctx, tool(t, "node"), "node_modules/@redocly/cli/bin/cli.js", "lint", "--config", "redocly.yaml",
		"--format", "json", file)
	linter.Dir, linter.WaitDelay = lintDir, time.Second
	linter.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	var diagnostics strings.Builder
	linter.Stderr = &diagnostics
	output, err := linter.Output()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) { // it fails when it has found errors
		t.Fatal(err)
	}
	var found struct {
		Totals *struct{ Errors, Warnings int }
	}
	if err := json.Unmarshal(output, &found); err != nil || found.Totals == nil {
		t.Fatalf("the linter says %s %s (%v)", output, diagnostics.String(), err)
	}
	return found.Totals.Errors + found.Totals.Warnings, string(output)
}

func TestTheLinterFindsNothing(t *testing.T) {
	t.Parallel()
	installLinter(t)
	if findings, report := lint(t, "../openapi.json"); findings > 0 {
		t.Errorf("%d findings: %s", findings, report)
	}
	broken := filepath.Join(t.TempDir(), "broken.json") // an example that its schema forbids
	text := strings.Replace(string(description), `"max_actions": 2,`, `"max_actions": "2",`, 1)
	if text == string(description) {
		t.Fatal("the example is not there any more")
	}
	if err := os.WriteFile(broken, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if findings, _ := lint(t, broken); findings == 0 {
		t.Error("the linter finds nothing in an example of a wrong type: it has not looked")
	}
}

func TestTheLockFileNamesNoRegistry(t *testing.T) {
	t.Parallel()
	lock, err := os.ReadFile(filepath.Join(lintDir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(lock), `"resolved"`) {
		t.Error("lint/package-lock.json has resolved URLs: write it with npm install, in lint/, where .npmrc leaves them out")
	}
}

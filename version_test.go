package main

import (
	"strings"
	"testing"
)

// TestVersionIsPrintedAndIsNoSetting: deployments set REMIT_VERSION for themselves, and that must not end the service.
func TestVersionIsPrintedAndIsNoSetting(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "--version")
	if err := <-p.exited; err != nil || !strings.HasPrefix(p.stdout.String(), "remit ") {
		t.Errorf("%v: %q, %s", err, p.stdout, p.stderr)
	}
	start(t, []string{"REMIT_VERSION=true"}).ready(t)
}

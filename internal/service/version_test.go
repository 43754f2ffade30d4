package service

import (
	"runtime"
	"strings"
	"testing"
)

// Deployments set REMIT_VERSION for their own use, and the service must still start.
func TestVersionIsPrintedAndCountedAndReadsNoVariable(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "--version")
	if err := p.Wait(); err != nil || !strings.HasPrefix(p.Stdout(), "remit "+stampedVersion+" ") {
		t.Errorf("%v: %q, %s", err, p.Stdout(), p.Stderr())
	}
	p = start(t, []string{"REMIT_VERSION=true"}).ready(t)
	if _, scrape := p.get(t, "/metrics"); !strings.Contains(scrape, `remit_build_info{goversion="`+runtime.Version()+`",version="`+stampedVersion+`"} 1`) {
		t.Errorf("the metrics say\n%s", scrape)
	}
}

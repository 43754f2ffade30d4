package service

import (
	"runtime"
	"strings"
	"testing"
)

// TestVersionIsPrintedAndReadsNoVariable: deployments set REMIT_VERSION for their own use, and the service must still start.
func TestVersionIsPrintedAndReadsNoVariable(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "--version")
	if err := p.Wait(); err != nil || !strings.HasPrefix(p.Stdout(), "remit "+stampedVersion+" ") {
		t.Errorf("%v: %q, %s", err, p.Stdout(), p.Stderr())
	}
	start(t, []string{"REMIT_VERSION=true"}).ready(t)
}

func TestMetricsAndTracesHaveTheReleaseVersion(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	p := traced(t, c.url)
	if _, scrape := p.get(t, "/metrics"); !strings.Contains(scrape, `remit_build_info{goversion="`+runtime.Version()+`",version="`+stampedVersion+`"} 1`) {
		t.Errorf("the metrics say\n%s", scrape)
	}
	p.stopWell(t)
	if told := c.resource["service.version"]; told != stampedVersion {
		t.Errorf("the traces are of the version %q", told)
	}
}

package fleet

import (
	"bytes"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// sampleResult returns a run with a few measurements of every kind.
func sampleResult() result {
	f := sample()
	f.stats.timeline.begin(newPacer(10, time.Second, 0), time.Second)
	f.stats.acting.Store(true)
	start := f.stats.timeline.start
	for i := range 200 {
		due := start.Add(time.Duration(i) * 5 * time.Millisecond)
		done := due.Add(time.Duration(i+1) * time.Millisecond)
		f.stats.record(opAction, due, done, reply{status: 200})
		f.stats.recordArrival(due, done, acknowledged)
	}
	f.stats.stormAt = start.Add(500 * time.Millisecond)
	return result{fleet: f, own: true, began: time.Unix(1_800_000_000, 0)}
}

func TestPageShowsEveryPart(t *testing.T) {
	t.Parallel()
	text := must(writePage(sampleResult()))(t)
	wantText(t, string(text), "Throughput over time", "Latency over time", "Latency by percentile", "offered", "answered", "all tokens expire",
		"Totals of 1 sessions reconcile.", "15 January 2027, 08:00 UTC", "<td>late action</td>", "403 session_limit_reached", "connection closed",
		"behind schedule when sent", "<td>10 actions/s, open loop</td>", " cores", "prefers-color-scheme: dark")
	if n := bytes.Count(text, []byte("<svg ")); n != 3 {
		t.Errorf("%d drawings", n)
	}
}

// The page loads no external resource, and does not identify this machine or its user.
func TestPageIsSelfContainedAndWellFormed(t *testing.T) {
	t.Parallel()
	text := must(writePage(sampleResult()))(t)
	no := []string{"<script", "<link", "<img", "@import", "url(", " src=", " href=", "http-equiv", must(os.Getwd())(t)}
	if host, err := os.Hostname(); err == nil && len(host) > 3 {
		no = append(no, host)
	}
	for _, no := range no {
		if bytes.Contains(text, []byte(no)) {
			t.Errorf("has %q", no)
		}
	}
	for _, address := range regexp.MustCompile(`https?://[^"' <]+`).FindAllString(string(text), -1) {
		if address != "http://www.w3.org/2000/svg" {
			t.Errorf("names %s", address)
		}
	}
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	must(0, decoder.Decode(new(struct{})))(t) // to the end of the root element, so that each in it is closed
}

func TestPageEscapesText(t *testing.T) {
	t.Parallel()
	r := sampleResult()
	r.unchecked = errors.New("<script>alert(1)</script>")
	text := must(writePage(r))(t)
	if bytes.Contains(text, []byte("<script>")) || !bytes.Contains(text, []byte("The totals were not checked: &lt;script&gt;")) {
		t.Error("the reason is not escaped")
	}
}

func TestPageOfARunThatNeverBegan(t *testing.T) {
	t.Parallel()
	f := must(newFleet(config{scenario: steady, agents: 1, sessions: 1, addr: "http://127.0.0.1:1"}))(t)
	text := must(writePage(result{fleet: f, unchecked: errors.New("set-up: no answer")}))(t)
	wantText(t, string(text), "The totals were not checked")
}

func TestPageOfAClosedLoopOffersNothing(t *testing.T) {
	t.Parallel()
	r := sampleResult()
	r.fleet.cfg.rate = 0
	r.fleet.stats.timeline.schedule.span = 0
	if text := must(writePage(r))(t); bytes.Contains(text, []byte("offered")) || bytes.Contains(text, []byte("evenly")) {
		t.Error("it speaks of a schedule")
	}
}

func TestReportFileIsWrittenAtomically(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report.html")
	cfg := smallRun(startFaulty(t, noFault))
	cfg.report = path
	wantReconciled(t, cfg)
	if text := must(os.ReadFile(path))(t); !bytes.HasSuffix(bytes.TrimSpace(text), []byte("</html>")) {
		t.Errorf("%d bytes", len(text))
	}
	if files := must(os.ReadDir(filepath.Dir(path)))(t); len(files) != 1 {
		t.Errorf("left beside it: %v", files)
	}
}

func TestBadReportPathIsReportedBeforeTheRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, path := range map[string]string{"a directory": dir, "nowhere": filepath.Join(dir, "no", "report.html")} {
		cfg := smallRun("http://127.0.0.1:1")
		cfg.report = path
		code, report, progress := ran(t.Context(), cfg)
		if code != exitUsage || report != "" || !strings.Contains(progress, "-report") || strings.Contains(progress, "setting up") {
			t.Errorf("%s: exit code %d\n%s%s", name, code, report, progress)
		}
	}
}

func TestDiscardedReportLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(newReportFile(filepath.Join(dir, "report.html")))(t).discard()
	if files := must(os.ReadDir(dir))(t); len(files) != 0 {
		t.Errorf("left: %v", files)
	}
}

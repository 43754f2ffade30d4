package fleet

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
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
	for _, want := range []string{
		"Throughput over time", "Latency over time", "Latency by percentile", "offered", "answered", "all tokens expire",
		"Totals of 1 sessions reconcile.", "15 January 2027, 08:00 UTC", "<td>late action</td>", "403 session_limit_reached", "connection closed",
		"behind schedule when sent", "<td>10 actions/s, open loop</td>", " cores", "prefers-color-scheme: dark",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q", want)
		}
	}
	if n := bytes.Count(text, []byte("<svg ")); n != 3 {
		t.Errorf("%d drawings", n)
	}
}

// The page loads no external resource, and does not identify this machine or its user.
func TestPageIsSelfContained(t *testing.T) {
	t.Parallel()
	text := must(writePage(sampleResult()))(t)
	for _, no := range []string{"<script", "<link", "<img", "@import", "url(", " src=", " href=", "http-equiv"} {
		if bytes.Contains(text, []byte(no)) {
			t.Errorf("has %q", no)
		}
	}
	for _, address := range regexp.MustCompile(`https?://[^"' <]+`).FindAllString(string(text), -1) {
		if address != "http://www.w3.org/2000/svg" {
			t.Errorf("names %s", address)
		}
	}
	host, err := os.Hostname()
	if err == nil && len(host) > 3 && bytes.Contains(text, []byte(host)) {
		t.Errorf("names the host %s", host)
	}
	if dir, err := os.Getwd(); err == nil && bytes.Contains(text, []byte(dir)) {
		t.Errorf("names the directory %s", dir)
	}
}

func TestPageIsWellFormed(t *testing.T) {
	t.Parallel()
	text := must(writePage(sampleResult()))(t)
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for depth := 0; ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			if depth != 0 {
				t.Errorf("%d elements are not closed", depth)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
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
	text, err := writePage(result{fleet: f, unchecked: errors.New("set-up: no answer")})
	if err != nil || !bytes.Contains(text, []byte("The totals were not checked")) {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestPageOfAClosedLoopOffersNothing(t *testing.T) {
	t.Parallel()
	r := sampleResult()
	r.fleet.cfg.rate = 0
	r.fleet.stats.timeline.schedule.span = 0
	text, err := writePage(r)
	if err != nil || bytes.Contains(text, []byte("offered")) || bytes.Contains(text, []byte("evenly")) {
		t.Errorf("%v, or speaks of a schedule", err)
	}
}

func TestReportFileIsWrittenAtomically(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report.html")
	cfg := smallRun(startFake(t, honest))
	cfg.report = path
	var stderr bytes.Buffer
	if code := run(t.Context(), cfg, io.Discard, &stderr); code != exitReconciled {
		t.Fatalf("exit code %d\n%s", code, &stderr)
	}
	text, err := os.ReadFile(path)
	if err != nil || !bytes.HasSuffix(bytes.TrimSpace(text), []byte("</html>")) {
		t.Errorf("%v, %d bytes", err, len(text))
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("left beside it: %v, %v", files, err)
	}
}

func TestBadReportPathIsReportedBeforeTheRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, path := range map[string]string{"a directory": dir, "nowhere": filepath.Join(dir, "no", "report.html")} {
		cfg := smallRun("http://127.0.0.1:1")
		cfg.report = path
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), cfg, &stdout, &stderr)
		if code != exitUsage || stdout.Len() > 0 || !strings.Contains(stderr.String(), "-report") || strings.Contains(stderr.String(), "setting up") {
			t.Errorf("%s: exit code %d\n%s%s", name, code, &stdout, &stderr)
		}
	}
}

func TestDiscardedReportLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := must(newReportFile(filepath.Join(dir, "report.html")))(t)
	file.discard()
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("left: %v, %v", files, err)
	}
}

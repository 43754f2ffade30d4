package main

import (
	"strings"
	"testing"
)

// reported feeds events to a report, and returns what it prints and whether all is well.
func reported(t *testing.T, events ...string) (string, bool) {
	t.Helper()
	var text strings.Builder
	r := newReport(&text)
	if err := r.read(strings.NewReader(strings.Join(events, "\n"))); err != nil {
		t.Fatal(err)
	}
	well := r.finish()
	return text.String(), well
}

func TestARunThatPassesIsALineForEachPackageAndItsSlowestTests(t *testing.T) {
	t.Parallel()
	text, well := reported(t,
		`{"Action":"run","Package":"remit/a","Test":"TestQuick"}`,
		`{"Action":"output","Package":"remit/a","Test":"TestQuick","Output":"chatter\n"}`,
		`{"Action":"pass","Package":"remit/a","Test":"TestQuick","Elapsed":0.1}`,
		`{"Action":"run","Package":"remit/a","Test":"TestSlow"}`,
		`{"Action":"run","Package":"remit/a","Test":"TestSlow/redis"}`,
		`{"Action":"pass","Package":"remit/a","Test":"TestSlow/redis","Elapsed":7}`,
		`{"Action":"pass","Package":"remit/a","Test":"TestSlow","Elapsed":7}`,
		`{"Action":"pass","Package":"remit/a","Elapsed":7.2}`,
		`{"Action":"skip","Package":"remit/none","Elapsed":0}`)
	want := "ok       7.2 s  remit/a\n\nthe 10 slowest tests\n     7.0 s  remit/a TestSlow/redis\n     0.1 s  remit/a TestQuick\n"
	if text != want || !well {
		t.Errorf("%v:\n%q, want\n%q", well, text, want)
	}
}

func TestAFailureShowsWhatItPrintedAndNothingOfOthers(t *testing.T) {
	t.Parallel()
	text, well := reported(t,
		`{"Action":"output","Package":"remit/a","Test":"TestGood","Output":"fine\n"}`,
		`{"Action":"output","Package":"remit/a","Test":"TestBad","Output":"=== RUN   TestBad\n"}`,
		`{"Action":"output","Package":"remit/a","Test":"TestBad","Output":"    a_test.go:1: one is not two\n"}`,
		`{"Action":"pass","Package":"remit/a","Test":"TestGood"}`,
		`{"Action":"fail","Package":"remit/a","Test":"TestBad","Elapsed":1}`,
		`{"Action":"fail","Package":"remit/a","Elapsed":1.5}`)
	if well || !strings.Contains(text, "one is not two") || !strings.Contains(text, "FAIL     1.5 s  remit/a") {
		t.Errorf("%v: the failure is not shown:\n%s", well, text)
	}
	if strings.Contains(text, "fine") || strings.Contains(text, "=== RUN") {
		t.Errorf("it shows too much:\n%s", text)
	}
}

func TestAProcessThatEndsInTheMiddleOfATestShowsWhatItPrinted(t *testing.T) {
	t.Parallel()
	text, well := reported(t,
		`{"Action":"output","Package":"remit/a","Test":"TestPanics","Output":"panic: no such key\n"}`,
		`{"Action":"output","Package":"remit/a","Output":"exit status 2\n"}`,
		`{"Action":"fail","Package":"remit/a","Elapsed":1.5}`)
	if well || !strings.Contains(text, "panic: no such key\nexit status 2\n") {
		t.Errorf("%v:\n%s", well, text)
	}
}

func TestWhatDoesNotBuildAndWhatIsNoEventIsShown(t *testing.T) {
	t.Parallel()
	text, well := reported(t,
		`{"ImportPath":"remit/a","Action":"build-output","Output":"a.go:1: undefined: x\n"}`,
		`{"ImportPath":"remit/a","Action":"build-fail"}`,
		`pattern ./nowhere: no such directory`)
	if well || !strings.Contains(text, "undefined: x") || !strings.Contains(text, "./nowhere") {
		t.Errorf("%v:\n%s", well, text)
	}
}

func TestASkippedTestFailsTheRun(t *testing.T) {
	t.Parallel()
	text, well := reported(t,
		`{"Action":"skip","Package":"remit/a","Test":"TestLater","Elapsed":0}`,
		`{"Action":"pass","Package":"remit/a","Elapsed":0.1}`)
	if well || !strings.Contains(text, "SKIP  remit/a TestLater") {
		t.Errorf("%v:\n%s", well, text)
	}
}

func TestARunOfNothingFails(t *testing.T) {
	t.Parallel()
	if text, well := reported(t); well {
		t.Errorf("nothing ran, and all is well:\n%s", text)
	}
}

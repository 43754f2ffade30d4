package fleet

import (
	"slices"
	"strings"
	"testing"
)

func TestWithoutSettings(t *testing.T) {
	got := withoutSettings([]string{"PATH=/bin", "REMIT_REDIS_URL=redis://elsewhere", "REMIT_X=", "HOME=/"})
	if want := []string{"PATH=/bin", "HOME=/"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLastOutputKeepsTheEnd(t *testing.T) {
	var o lastOutput
	if got := o.String(); got != "" {
		t.Errorf("without output: %q", got)
	}
	for range 2 * outputKept {
		o.Write([]byte("x"))
	}
	o.Write([]byte("panic: the end\n"))
	if got := o.String(); !strings.HasSuffix(got, "xpanic: the end") || len(o.kept) != outputKept {
		t.Errorf("%d bytes kept, ends %q", len(o.kept), got[len(got)-20:])
	}
}

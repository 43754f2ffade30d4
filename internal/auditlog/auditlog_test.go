package auditlog_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"remit/internal/auditlog"
)

// export returns the lines of a correct export of the events from first to last.
func export(first, last int) []string {
	var lines []string
	previous := strings.Repeat("0", 64)
	for i := 1; i <= last; i++ {
		line := fmt.Sprintf(`{"id":"a:%d-0","type":"session.created","seq":%d,"previous_hash":"%s"}`, i, i, previous)
		previous = hashOf(line)
		if i >= first {
			lines = append(lines, line)
		}
	}
	return lines
}

func text(lines []string) *strings.Reader { return strings.NewReader(strings.Join(lines, "\n") + "\n") }

func TestACorrectExportIsVerified(t *testing.T) {
	t.Parallel()
	whole := export(1, 9)
	for name, test := range map[string]struct {
		lines []string
		want  auditlog.Result
	}{
		"whole":             {whole, auditlog.Result{First: 1, Last: 9, Hash: hashOf(whole[8])}},
		"a part":            {export(4, 9), auditlog.Result{First: 4, Last: 9, Hash: hashOf(whole[8])}},
		"with a checkpoint": {append(slices.Clone(whole), `{"checkpoint":"a.b.c"}`), auditlog.Result{First: 1, Last: 9, Hash: hashOf(whole[8]), Checkpoint: "a.b.c"}},
		"one event":         {whole[:1], auditlog.Result{First: 1, Last: 1, Hash: hashOf(whole[0])}},
	} {
		got, err := auditlog.Verify(text(test.lines))
		if err != nil || got != test.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, test.want)
		}
	}
	if got, err := auditlog.Verify(strings.NewReader("")); err != nil || got != (auditlog.Result{}) {
		t.Errorf("an empty export: %+v, %v", got, err)
	}
}

func hashOf(line string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(line))) }

func TestEachFaultIsNamed(t *testing.T) {
	t.Parallel()
	replaced := func(line int, old, by string) func([]string) []string {
		return func(l []string) []string { l[line] = strings.Replace(l[line], old, by, 1); return l }
	}
	for name, test := range map[string]struct {
		edit     func(lines []string) []string
		sequence int64
	}{
		"changed":           {replaced(3, "created", "expired"), 4},
		"another hash":      {replaced(3, `"previous_hash":"`, `"previous_hash":"0`), 4},
		"the first changed": {replaced(0, "created", "expired"), 1},
		"the last but one":  {replaced(7, "created", "expired"), 8},
		"dropped":           {func(l []string) []string { return slices.Delete(l, 4, 5) }, 5},
		"swapped":           {func(l []string) []string { l[4], l[5] = l[5], l[4]; return l }, 5},
		"repeated":          {func(l []string) []string { return slices.Insert(l, 4, l[3]) }, 4},
		"no event":          {func(l []string) []string { l[4] = "x"; return l }, 0},
		"no seq":            {func(l []string) []string { l[4] = "{}"; return l }, 0},
		"an event follows":  {func(l []string) []string { return slices.Insert(l, 4, `{"checkpoint":"a.b.c"}`) }, 0},
	} {
		_, err := auditlog.Verify(text(test.edit(export(1, 9))))
		var broken *auditlog.BrokenError
		if !errors.As(err, &broken) || broken.Sequence != test.sequence {
			t.Errorf("%s: %v, want a fault of event %d", name, err, test.sequence)
		}
	}
}

func TestALongLineIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := auditlog.Verify(strings.NewReader(strings.Repeat("x", 2<<20))); !errors.Is(err, auditlog.ErrTooLong) {
		t.Error(err)
	}
}

package redisproc

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestTailKeepsWholeLastLines(t *testing.T) {
	t.Parallel()
	var out tail
	for i := range 1000 {
		fmt.Fprintf(&out, "line %d\n", i)
	}
	_, kept, _ := strings.Cut(out.String(), ":\n")
	if len(kept) > tailSize || !strings.HasPrefix(kept, "line ") || !strings.HasSuffix(kept, "\nline 999") {
		t.Errorf("kept %d bytes: %q", len(kept), kept)
	}
}

func TestTailOutlivesAFailingLog(t *testing.T) {
	t.Parallel()
	_, closed := io.Pipe()
	closed.Close()
	out := tail{log: closed}
	must(io.WriteString(&out, "last words\n"))(t)
	if !strings.HasSuffix(out.String(), "last words") {
		t.Errorf("String() = %q", out.String())
	}
}

package redisclient

import (
	"errors"
	"fmt"
	"testing"
)

func TestAReplyReadsWhatIsOptional(t *testing.T) {
	t.Parallel()
	r := &Reply{Values: []any{nil, "", "12"}}
	got := fmt.Sprintln(r.Optional(0) == "", r.Optional(2), r.NumberOr0(0), r.NumberOr0(1), r.NumberOr0(2),
		r.TimeOrZero(0).IsZero(), r.TimeOrZero(1).IsZero(), r.TimeOrZero(2).UnixMilli())
	if want := "true 12 0 0 12 true true 12\n"; got != want || r.Err != nil {
		t.Errorf("%q (%v), want %q", got, r.Err, want)
	}
}

func TestAnAnswerWithinAnotherHasTheSameRefusals(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	known := Refusals{"no": func(*Reply) error { return refused }}
	for code, want := range map[string]error{"ok": nil, "no": refused, "unheard_of": ErrReply} {
		r := &Reply{}
		must(0, known.Read(r, []any{"ok", []any{code, "text"}}))(t)
		whole, err := r.List(0).Whole()
		if !errors.Is(err, want) || (whole == nil) != (want != nil) || whole != nil && whole.Text(0) != "text" {
			t.Errorf("%s: %v, %v", code, whole, err)
		}
	}
}

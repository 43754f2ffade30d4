package redisclient

import (
	"errors"
	"fmt"
	"testing"
)

// read takes an answer of a script, which must be a success.
func (r *Reply) read(t *testing.T, answer any) *Reply {
	t.Helper()
	if err := (Refusals{}).Read(r, answer); err != nil {
		t.Fatalf("%q: %v", answer, err)
	}
	return r
}

func TestAJoinedReplyIsReadAsAnArrayIs(t *testing.T) {
	t.Parallel()
	id := "0123456789\n\n2345"
	array := []any{"ok", "7", nil, "read write", id}
	for name, answer := range map[string]any{"array": array, "joined": "ok\n7\n\nread write\n" + id} {
		r := new(Reply).read(t, answer)
		got := fmt.Sprintf("%d %d %q %q %q", r.Number(0), r.NumberOr0(1), r.Optional(1), r.Text(2), r.Rest(3))
		if want := fmt.Sprintf("7 0 %q %q %q", "", "read write", id); got != want || r.Err != nil {
			t.Errorf("%s: %s (%v), want %s", name, got, r.Err, want)
		}
		if !r.TimeOrZero(1).IsZero() || r.TimeOrZero(0).UnixMilli() != 7 || r.NumberOr0(0) != 7 || r.Optional(2) != "read write" {
			t.Errorf("%s: what is optional is %s, %s, %d and %q", name, r.TimeOrZero(1), r.TimeOrZero(0), r.NumberOr0(0), r.Optional(2))
		}
		if read := r.ID(3); string(read[:]) != id || r.Err != nil {
			t.Errorf("%s: id %q (%v)", name, read[:], r.Err)
		}
		wantEqual(t, name+", read again after a later one", r.Number(0), 7)
		if rest := r.From(2); rest.Text(0) != "read write" || rest.Rest(1) != id || rest.Err != nil {
			t.Errorf("%s: from the third value on it is another reply", name)
		}
		if !r.Has(3) || name == "array" && r.Has(4) {
			t.Errorf("%s: it has other values", name)
		}
		if r.Number(2); !errors.Is(r.From(0).Err, ErrReply) {
			t.Errorf("%s: the error is not that of the rest: %v", name, r.Err)
		}
	}
}

func TestANumberOfAJoinedReplyIsReadAsThatOfAnArrayIs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"0", "7", "007", "1000000000000000000", "9223372036854775807", "9223372036854775808", "-1", "+1", "", "1x", "1 ", " 1", "1.0", "x",
	} {
		array, joined, last := new(Reply).read(t, []any{"ok", text}), new(Reply).read(t, "ok\n"+text+"\n5"), new(Reply).read(t, "ok\n"+text)
		want := array.Number(0)
		for _, r := range []*Reply{joined, last} {
			if got := r.Number(0); got != want || fmt.Sprint(r.Err) != fmt.Sprint(array.Err) {
				t.Errorf("%q: %d, %v, want %d, %v", text, got, r.Err, want, array.Err)
			}
		}
		wantEqual(t, text+": the next one", joined.Number(1), 5)
	}
}

func TestAJoinedReplyHasNoMoreValuesThanLines(t *testing.T) {
	t.Parallel()
	for answer, values := range map[string]int{"ok": 0, "ok\n": 1, "ok\n1": 1, "ok\n1\n": 2, "ok\n\n\n": 3} {
		r := new(Reply).read(t, answer)
		if !r.Has(values-1) && values > 0 || r.Has(values) {
			t.Errorf("%q: it does not have %d values", answer, values)
		}
		if r.Text(values); !errors.Is(r.Err, ErrReply) {
			t.Errorf("%q: the value after the last is read: %v", answer, r.Err)
		}
	}
}

func TestAReplyThatIsReadAgainForgetsTheOneBefore(t *testing.T) {
	t.Parallel()
	r := new(Reply).read(t, "ok\n1\n2")
	r.Text(1)
	if r.read(t, []any{"ok", "3"}); r.Text(0) != "3" || r.Has(1) {
		t.Error("values of the text are left")
	}
	if r.read(t, "ok\n4"); r.Text(0) != "4" || r.Has(1) || r.Err != nil {
		t.Error("values of the array are left")
	}
}

func TestACodeWithoutAMeaningIsNoReply(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	known := Refusals{"refused": func(*Reply) error { return refused }}
	for _, answer := range []any{"", "\n1", "outcom", nil, int64(1), []any{}, []any{int64(1)}, []any{nil}} {
		if err := known.Read(new(Reply), answer); !errors.Is(err, ErrReply) {
			t.Errorf("%q: %v", answer, err)
		}
	}
	for _, answer := range []any{"refused", "refused\n1", []any{"refused"}} {
		wantError(t, fmt.Sprint(answer), known.Read(new(Reply), answer), refused)
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

func TestReadingAJoinedReplyAllocatesNothing(t *testing.T) { // not in parallel: it counts allocations of the process
	var r Reply
	known := Refusals{}
	answer := any("ok\n1\n2\n3\n4\n5\n6\n")
	if allocated := testing.AllocsPerRun(100, func() {
		_ = known.Read(&r, answer)
		for i := range 6 {
			r.Number(i)
		}
	}); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}

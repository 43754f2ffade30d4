package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

const someEvents = "\ufeff: comment\r\nevent: a\r\ndata: {\"one\":\"é\"}\r\n\r\ndata:two\ndata: more\n\nid: 1\n\ndata\n\rdata: three\r\r"

// Events are the same wherever the stream is cut.
func TestEventsAreReadInPiecesOfAnySize(t *testing.T) {
	t.Parallel()
	want := []string{`{"one":"é"}`, "two\nmore", "three"}
	for size := 1; size <= len(someEvents); size++ {
		if got := eventsOf([]byte(someEvents), size); !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: %q", size, got)
		}
	}
}

// An event that is too long has no part that is read as another event.
func TestAnEventThatIsTooLongIsPassedOver(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"data:" + strings.Repeat("x", 95) + "\ndata: y\ndata: [DONE]\n\n",
		"data:" + strings.Repeat("x", 200) + "\ndata: [DONE]\n\n",
		": " + strings.Repeat("x", 200) + "\ndata: [DONE]\n\n",
		strings.Repeat("data: 123456\n", 20) + "\n",
	} {
		for size := 1; size <= len(text); size++ {
			var got []string
			e := events{most: 100, dispatch: func(data []byte) { got = append(got, string(data)) }}
			for piece := range slices.Chunk([]byte(text+"data: next\n\n"), size) {
				e.write(piece)
				if kept := len(e.line) + len(e.data); kept > 100 {
					t.Fatalf("%d bytes are kept", kept)
				}
			}
			if !slices.Equal(got, []string{"next"}) {
				t.Fatalf("%.20q in pieces of %d: %q", text, size, got)
			}
		}
	}
}

func eventsOf(text []byte, size int) (got []string) {
	e := events{most: MaxBody, dispatch: func(data []byte) { got = append(got, string(data)) }}
	for piece := range slices.Chunk(text, size) {
		e.write(piece)
	}
	return got
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(someEvents), 3)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		whole := eventsOf(text, max(len(text), 1))
		if pieces := eventsOf(text, min(max(size, 1), 1000)); !slices.Equal(pieces, whole) {
			t.Errorf("%q and %q", pieces, whole)
		}
		for _, data := range whole {
			if !bytes.Contains(bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n")), []byte(strings.SplitN(data, "\n", 2)[0])) {
				t.Errorf("%q is not in the text", data)
			}
			for _, format := range []Format{ChatCompletions, Responses, Messages, Embeddings} {
				var p progress
				format.event([]byte(data), &p)
				if p.known && !json.Valid([]byte(data)) {
					t.Errorf("usage of %q", data)
				}
			}
		}
	})
}

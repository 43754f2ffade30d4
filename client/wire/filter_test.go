package wire

import (
	"slices"
	"strings"
	"testing"
)

const (
	oneChoice = `data: {"choices":[{"delta":{"content":"é"}}],"usage":null}`
	theUsage  = `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`
)

// Every byte passes as it came, except those of the event with the usage, wherever the stream is cut.
func TestTheUsageChunkIsTakenOut(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, before, event, after string }{
		{"LF", oneChoice + "\n\n", theUsage + "\n\n", "data: [DONE]\n\n"},
		{"CRLF", oneChoice + "\r\n\r\n", theUsage + "\r\n\r\n", "data: [DONE]\r\n\r\n"},
		{"CR", oneChoice + "\r\r", theUsage + "\r\r", "data: [DONE]\r\r"},
		{"CRLF and LF", oneChoice + "\r\n\n", theUsage + "\n\r\n", "data: [DONE]\n\r\n"},
		{"with other fields", ":a\n\n", "event: chunk\nid: 7\n" + theUsage + "\nretry: 5\n\n", "\n\n:b\n"},
		{"in several lines of data", "", "data: {\"choices\":[],\ndata:\"usage\":{}}\n\n", "data: [DONE]\n\n"},
		{"at the end", oneChoice + "\n\n", theUsage + "\n", ""},
		{"at the end of the last line", oneChoice + "\n\n", theUsage, ""},
		{"twice", "", theUsage + "\n\n" + theUsage + "\n\n", "data: [DONE]\n\n"},
		{"with blank lines before", "\r\n\r\n\n", theUsage + "\r\n\r\n", "\r\n"},
		{"with a BOM", "\ufeff" + oneChoice + "\n\n", theUsage + "\n\n", ""},
		{"comments alone", ": ping\r\n\r\n: ping\n\n", "", ""},
		{"comments before it", ": ping\r\n", theUsage + "\r\n\r\n", "data: [DONE]\r\n\r\n"},
		{"no usage yet", "", "", `data: {"choices":[],"usage":null,"prompt_filter_results":[]}` + "\n\n"},
		{"usage beside a choice", "", "", `data: {"choices":[{}],"usage":{}}` + "\n\n"},
		{"no choices", "", "", `data: {"usage":{}}` + "\n\n"},
		{"an error", "", "", `data: {"choices":[],"usage":{},"error":{"message":"x"}}` + "\n\n"},
		{"no JSON", "", "", "data: {\"choices\":[],\"usage\":{}\n\n"},
		{"cut within it", oneChoice + "\n\n", "", theUsage[:40]},
		{"no text", "", "", "\x00\xff\r\xfe\n\n"},
		{"an event that is too long", "", "", "data: {\"choices\":[],\"usage\":{},\"x\":\"" + strings.Repeat("x", mostWithheld) + "\"}\n\n"},
	} {
		sizes := []int{1, 2, 3, 5, 7, 16, 64, 1000, 1 << 20}
		if len(row.before+row.event+row.after) > 10_000 {
			sizes = []int{997, 1 << 20, 1 << 22}
		}
		for _, size := range sizes {
			u := filter{hides: true}
			var got []byte
			for piece := range slices.Chunk([]byte(row.before+row.event+row.after), size) {
				got = append(got, u.next(piece, false)...)
			}
			got = append(got, u.next(nil, true)...)
			if want := row.before + row.after; string(got) != want {
				t.Errorf("%s, in pieces of %d: %.300q, want %.300q", row.name, size, got, want)
			}
		}
	}
}

// An event passes with its last byte, and a heartbeat with its line: nothing may come for long.
func TestWhatIsWholePassesAtOnce(t *testing.T) {
	t.Parallel()
	const ping = ": ping"
	for _, texts := range [][]string{
		{oneChoice + "\n\n"}, {oneChoice + "\r\r"}, {oneChoice + "\r\n\r"},
		{ping + "\n", ping + "\n", oneChoice + "\n\n", ":\n"}, {ping + "\r", ping + "\r", oneChoice + "\r\r", ":\r"},
		{ping + "\r\n", ping + "\r\n", oneChoice + "\r\n\r\n", ":\r\n"},
	} {
		u := filter{hides: true}
		for _, text := range texts {
			if got := string(u.next([]byte(text), false)); got != text {
				t.Errorf("%q of %q", got, text)
			}
		}
		if got := string(u.next([]byte(theUsage+"\n\n"), true)); got != "" {
			t.Errorf("%q passed after %q", got, texts)
		}
	}
}

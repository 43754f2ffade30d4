package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remit/client/prices"
)

var update = flag.Bool("update", false, "write what is expected")

// answerRow is a row of testdata/answers, whose README has its form.
type answerRow struct {
	name, format, how string
	body, answer      string
	options           Options
	expects           string
	head              string // the row up to what it expects
}

func readAnswerRows(t *testing.T, text string) (rows []answerRow) {
	t.Helper()
	for _, part := range strings.Split("\n"+text, "\n=== ")[1:] {
		head, expects, hasExpects := strings.Cut(part, "\nexpects\n")
		name, rest, _ := strings.Cut(head, "\nrequest ")
		request, answer, hasAnswer := strings.Cut(rest, "\nanswer ")
		if !hasExpects || !hasAnswer {
			t.Fatalf("%s: it lacks a part", name)
		}
		r := answerRow{name: name, head: head, expects: strings.TrimSpace(expects), options: Options{Models: map[string]string{}}}
		lines := strings.Split(request, "\n")
		r.format, r.body = lines[0], lines[len(lines)-1]
		for _, line := range lines[1 : len(lines)-1] {
			if models, isMap := strings.CutPrefix(line, "model "); isMap {
				from, to, _ := strings.Cut(models, " is ")
				r.options.Models[from] = to
			} else {
				r.options.AnswersModel = line == "prices the answer's model"
			}
		}
		r.how, r.answer, _ = strings.Cut(answer, "\n")
		if strings.HasPrefix(r.how, "stream") {
			r.answer += "\n"
		}
		for end, written := range map[string]string{"CRLF": "\r\n", "CR": "\r"} {
			if strings.HasSuffix(r.how, " "+end) {
				r.answer = strings.ReplaceAll(r.answer, "\n", written)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

var formatNames = map[string]Format{"chat": ChatCompletions, "responses": Responses, "messages": Messages, "embeddings": Embeddings}

// Each row of testdata/answers is metered as it says, wherever it is cut, and its last event passes when it has been read.
func TestAnswersAreMetered(t *testing.T) {
	t.Parallel()
	table, err := prices.ReadFile("testdata/prices.json")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("testdata/answers/*.txt")
	count := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var written []string
		for _, row := range readAnswerRows(t, string(text)) {
			count++
			for _, size := range []int{1 << 20, 1, 2, 3, 7, 64} {
				got := row.play(t, table, size)
				if *update {
					row.expects = got
				}
				if got != row.expects {
					t.Errorf("%s: %s, in pieces of %d:\n%s\nwant\n%s", file, row.name, size, got, row.expects)
				}
			}
			written = append(written, "=== "+row.head+"\nexpects\n"+row.expects+"\n")
		}
		if *update {
			if err := os.WriteFile(file, []byte(strings.Join(written, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if count < 68 {
		t.Errorf("there are %d rows", count)
	}
}

// play reads the answer in pieces of this size, and returns what is expected of it.
func (r answerRow) play(t *testing.T, table *prices.Table, size int) string {
	t.Helper()
	call, err := Read(formatNames[r.format], []byte(r.body), table, r.options)
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if strings.HasPrefix(r.how, "stream") {
		header.Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	if strings.HasSuffix(r.how, "compressed") {
		header.Set("Content-Encoding", "gzip")
	}
	m := call.Meter(header)
	var passed, before []byte // before it was known that the answer is complete
	pass := func(passes []byte) {
		if m.Ended() && before == nil {
			before = append([]byte{}, passed...)
		}
		passed = append(passed, passes...)
	}
	for text := []byte(r.answer); len(text) > 0; {
		piece := text[:min(size, len(text))]
		text = text[len(piece):]
		pass(m.Next(piece))
	}
	pass(m.End(!strings.HasSuffix(r.how, "cut")))
	if before != nil && (bytes.HasSuffix(before, []byte(r.answer)) || m.completes(before)) {
		t.Errorf("%s: %q passed before it was known to be complete", r.name, before)
	}
	hold, err := call.Worst()
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	return fmt.Sprintf("hold %d\n%s", hold, m.described(t, passed, r.answer))
}

// completes reports whether a reader of these bytes alone takes the answer for complete, also one that waits for no empty line.
func (m *Meter) completes(passed []byte) bool {
	other := m.call.Meter(http.Header{"Content-Type": {map[bool]string{true: "text/event-stream"}[m.streamed]}})
	other.Next(passed)
	other.events.end()
	return other.progress.ended || !m.streamed && m.text != nil && len(passed) == len(m.text)
}

func (m *Meter) described(t *testing.T, passed []byte, answer string) string {
	t.Helper()
	a := m.Answer()
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("%s", map[bool]string{true: "complete", false: "not complete"}[a.Complete]+map[bool]string{true: ", failed"}[a.Failed])
	if a.Tier+a.Model != "" {
		add("%s", strings.TrimSpace("by "+a.Model+" "+a.Tier))
	}
	if a.Known {
		u := a.Usage
		counts := fmt.Sprintf("input %d, cached %d, written %d, for an hour %d, output %d, reasoning %d",
			u.Input, u.CachedInput, u.CacheCreationInput, u.HourCacheCreationInput, u.Output, u.Reasoning)
		parts := strings.Split(counts, ", ")
		kept := parts[:0]
		for _, part := range parts {
			if !strings.HasSuffix(part, " 0") {
				kept = append(kept, part)
			}
		}
		add("used: %s", strings.Join(kept, ", "))
	}
	cost, known := m.Cost()
	switch {
	case known:
		add("costs %d", cost)
	case m.streamed && (a.Failed || !a.Complete):
		most, err := m.Most()
		if err != nil {
			t.Fatal(err)
		}
		add("costs at most %d", most)
	default:
		add("costs the hold")
	}
	if string(passed) != answer {
		add("passes without %d bytes", len(answer)-len(passed))
	}
	return strings.Join(lines, "\n")
}

// A stream may say any number of times how a message came about, and an answer may have more than there is room for.
func TestAMeterKeepsNoMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	c := read(t, Messages, `{"model":"plain","max_tokens":9,"stream":true}`, Options{})
	m := c.Meter(http.Header{"Content-Type": {"text/event-stream"}})
	m.Next([]byte("data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\n"))
	for range 100 {
		m.Next([]byte("data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":1,\"iterations\":[{\"type\":\"message\"},{\"type\":\"advisor\"}]}}\n\n"))
	}
	if kept := len(m.progress.counts.Iterations); kept != 1 || m.Answer().Known {
		t.Errorf("%d iterations are kept, %+v", kept, m.Answer())
	}
	whole := read(t, ChatCompletions, `{"model":"plain","max_tokens":9}`, Options{}).Meter(http.Header{})
	passes := len(whole.Next(make([]byte, 1000)))
	kept := whole.Kept()
	whole.Forget()
	passes += len(whole.Next([]byte("abc"))) + len(whole.End(true))
	if kept < 1000 || len(whole.text) != 0 || passes != 1003 || whole.Answer().Known || !whole.Ended() {
		t.Errorf("%d bytes were kept, %d are, %d pass, %+v", kept, len(whole.text), passes, whole.Answer())
	}
}

// An answer whose output is only white space in brackets has none.
func TestAnEmptyOutputIsNone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"": true, "null": true, `""`: true, "[]": true, "{ }": true, "[\n\t]": true, `"a"`: false, "[0]": false, "0": false, "false": false} {
		if got := isEmptyText(json.RawMessage(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"remit/client"
	"remit/test/suite"
)

// commands is text of an untrusted service that would rename and clear a terminal.
const commands = "active\x1b]0;PWNED\a\x1b[2J\u009b2J\x7f\r\n"

func TestResponsesCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	v := seen[client.SessionInfo]{value: client.SessionInfo{ID: commands, Status: commands, Metadata: json.RawMessage(`{"\u009b":"` + "\u009b\x7f" + `"}`)}, away: commands}
	drawn := textOf(drawSession(v, style{width: 1000}))
	var written, document strings.Builder
	suite.NoError(t, errors.Join(writeLine(&written, v), writeJSON(&document, v.value)))
	controls := func(r rune) bool { return unicode.IsControl(r) && r != '\n' }
	for name, text := range map[string]string{"bars": drawn, "a line": written.String(), "a document": document.String()} {
		if strings.ContainsFunc(text, controls) || !strings.Contains(text, "PWNED") {
			t.Errorf("%s controls the terminal, or has lost its text: %q", name, text)
		}
		if lines := strings.Count(text, "\n"); name != "bars" && lines != 1 {
			t.Errorf("%s is in %d lines: %q", name, lines, text)
		}
	}
}

func TestJSONEscapesControlCharacters(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	suite.Must(0, writeJSON(&text, map[string]string{"name": commands + "é\u00a0<日本>"}))(t)
	var back map[string]string
	if err := json.Unmarshal(text.Bytes(), &back); err != nil || back["name"] != commands+"é\u00a0<日本>" {
		t.Errorf("%v: %q comes back as %q", err, text.String(), back["name"])
	}
	if !strings.Contains(text.String(), `\u009b`) || !strings.Contains(text.String(), "é\u00a0<日本>") {
		t.Errorf("%q", text.String())
	}
	text.Reset()
	if err := writeJSON(&text, json.RawMessage("\"\x9b2J\"")); err != nil || text.String() != `"\ufffd2J"`+"\n" {
		t.Errorf("a byte that is no UTF-8: %v, %q", err, text.String())
	}
}

func TestATableIsAlignedByDisplayWidth(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	rows := [][]string{{"ID", "NAME", "STATUS"}, {"1", "scout", "active"}, {"2", "日本語", "active"}, {"3", "e\u0301te\u0301", ""}, {"4", "🤖", "x"}}
	suite.Must(0, writeTable(&text, rows))(t)
	want := "ID  NAME    STATUS\n1   scout   active\n2   日本語  active\n3   e\u0301te\u0301     \n4   🤖      x\n"
	wantEqual(t, "the text", text.String(), want)
	if cut := (line{{"日本語", plain}, {"x", plain}}).cut(3); cut.columns() != 2 || cut.text(false) != "日" {
		t.Errorf("cut to 3 columns: %q", cut.text(false))
	}
}

func TestARefusalNamesANeedOnlyIfTheServiceDoes(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"max_actions", "max_actions_per_minute", "max_value_usd", "max_committed_usd"} {
		wantEqual(t, limit, neededOf(limit, 0, 0), "")
		if got := neededOf(limit, 1, 1); got == "" {
			t.Errorf("%s: no need", limit)
		}
	}
}

package lua

import (
	"strings"
	"testing"
)

func TestAJoinedReplyHasALineForEachValue(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		"return {'ok'}":                          "return 'ok'",
		"return {'ok', n}":                       `return 'ok\n' .. (n or '')`,
		"return {'ok', n, '', m}":                `return 'ok\n' .. (n or '') .. '\n\n' .. (m or '')`,
		"return {'limit', 'max_actions', n, ma}": `return 'limit\nmax_actions\n' .. (n or '') .. '\n' .. (ma or '')`,
		"return {'ok', n, ''}":                   `return 'ok\n' .. (n or '') .. '\n'`,
		"return {'gone', e or ''}":               `return 'gone\n' .. (e or '' or '')`,
		"return {'ok', f('%d', now), x}":         `return 'ok\n' .. (f('%d', now) or '') .. '\n' .. (x or '')`,
		"return {x[1], y['], ']}":                `return '' .. (x[1] or '') .. '\n' .. (y['], '] or '')`,
		"  return {code, 'a, b'}":                `  return '' .. (code or '') .. '\na, b'`,
		"-- {'ok', n} is what it returns":        "-- {'ok', n} is what it returns",
	} {
		if got := joined(joins + reply); got != want {
			t.Errorf("%s\n  becomes %s\n  want    %s", reply, got, want)
		}
		if got := joined(reply); got != reply {
			t.Errorf("without the line, %s becomes %s", reply, got)
		}
	}
}

// Redis would refuse to join an array at run time, and only where the reply is given.
func TestNoJoinedScriptRepliesWithAnArray(t *testing.T) {
	t.Parallel()
	found := 0
	for _, file := range of(t, "script") {
		text := include(expand(read(file)))
		if !strings.Contains(text, joins) {
			continue
		}
		found++
		for _, match := range arrayReply.FindAllStringSubmatch(text, -1) {
			for _, value := range split(match[1]) {
				if strings.HasPrefix(value, "{") || strings.HasPrefix(value, "unpack") || strings.Contains(text, "local "+value+" = {") {
					t.Errorf("%s replies with %s", file, value)
				}
			}
		}
		if source := joined(text); strings.Contains(source, "return {") || strings.Contains(source, joins) {
			t.Errorf("%s: a reply is not joined", file)
		}
	}
	if found == 0 {
		t.Error("no script is joined")
	}
}

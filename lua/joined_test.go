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

// What is stored for an idempotency key is what the version before reads, and stores.
func TestAnOperationOfAnotherScriptReturnsArrays(t *testing.T) {
	t.Parallel()
	merged, _, _ := MergedIdempotentSource("budgets/charge_session")
	for _, source := range []string{IdempotentSource("budgets/charge_session"), SealedIdempotentSource("budgets/charge_session"), merged} {
		if strings.Contains(source, `'ok\n'`) || !strings.Contains(source, "return {'ok', new_used_actions,") || strings.Contains(source, joins) {
			t.Error("its replies are joined")
		}
	}
}

func TestAMergedScriptRepliesAsItDoesAlone(t *testing.T) {
	t.Parallel()
	source, _, _ := MergedSource("budgets/charge_session")
	if !strings.Contains(source, `return 'ok\n' .. (new_used_actions or '')`) || strings.Contains(source, "return {'ok'") {
		t.Error("its replies are not joined")
	}
}

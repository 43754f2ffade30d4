package wire

import "testing"

// What a request says about reasoning counts, and otherwise what the price table says of the model.
func TestARequestThatAsksToReason(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		body        string
		model, want bool
	}{
		{`{}`, true, true},
		{`{}`, false, false},
		{`{"reasoning":{}}`, true, true},
		{`{"reasoning":{"effort":null,"summary":null}}`, false, false},
		{`{"reasoning":{"effort":"none"}}`, true, false},
		{`{"reasoning":{"effort":"low"}}`, false, true},
		{`{"reasoning":{"enabled":true}}`, false, true},
		{`{"reasoning":{"max_tokens":2000}}`, false, true},
		{`{"reasoning":{"effort":"none","max_tokens":2000}}`, false, true},
		{`{"reasoning":{"effort":"none","type":"enabled"}}`, false, true},
		{`{"thinking":{"type":"disabled"}}`, true, false},
		{`{"thinking":{"type":"disabled"},"thinking_config":{"thinking_budget":100}}`, true, true},
		{`{"thinking":{"type":"disabled"},"reasoning":{"enabled":true}}`, true, true},
		{`{"thinking":{"type":"disabled"},"reasoning_effort":"low"}`, false, true},
		{`{"thinking":{"type":"enabled","budget_tokens":1024}}`, false, true},
		{`{"reasoning_effort":"low"}`, false, true},
		{`{"reasoning_effort":"none"}`, true, false},
		{`{"reasoning_effort":null}`, true, true},
		{`{"reasoning":7}`, false, true},
	} {
		request, _, _ := readMembers([]byte(row.body))
		if got := canReason(request, row.model); got != row.want {
			t.Errorf("%s, model %t: %t", row.body, row.model, got)
		}
	}
}

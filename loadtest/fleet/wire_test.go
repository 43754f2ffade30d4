package fleet

import (
	"strings"
	"testing"
)

// A zero is valid; an absent member is not.
func TestAReadingNeedsEveryMember(t *testing.T) {
	for _, test := range []struct {
		full string
		read func(reply) error
	}{
		{
			`"action_count":0,"max_actions":0,"remaining_actions":0,"value_used_usd":0,"max_value_usd":0,"value_held_usd":0,"remaining_value_usd":0,`,
			func(r reply) error { _, err := readUsage(r); return err },
		},
		{
			`"max_actions":1,"action_count":0,"max_value_usd":0,"value_used_usd":0,"value_held_usd":0,"value_overage_usd":0,`,
			func(r reply) error { _, err := readSession(r); return err },
		},
		{
			`"sequence_number":1,"value_usd":0,"value_held_usd":0,"overage_usd":0,`,
			func(r reply) error { _, err := readTransaction(r); return err },
		},
	} {
		if err := test.read(problemReply(200, test.full+`"id":"s"`)); err != nil {
			t.Errorf("full: %v", err)
		}
		for member := range strings.SplitSeq(strings.TrimSuffix(test.full, ","), ",") {
			name, _, _ := strings.Cut(member, ":")
			for _, bad := range []string{"", name + ":-1,"} {
				if err := test.read(problemReply(200, strings.Replace(test.full, member+",", bad, 1)+`"id":"s"`)); err == nil {
					t.Errorf("passes with %q for %s", bad, member)
				}
			}
		}
	}
	if _, err := readUsage(done("value_held_usd", "")); err == nil || !strings.Contains(err.Error(), "value_held_usd") {
		t.Errorf("without value_held_usd: %v", err)
	}
}

func TestTokenPairNeedsEveryMember(t *testing.T) {
	for pair, usable := range map[tokenPair]bool{
		{"a", "r", "bearer", 3600}: true, {"", "r", "bearer", 3600}: false, {"a", "", "bearer", 3600}: false, {"a", "r", "", 3600}: false,
		{"a", "r", "bearer", 0}: false,
	} {
		if pair.usable() != usable {
			t.Errorf("%+v is usable: %t", pair, !usable)
		}
	}
}

// The text of a reply never quotes the body of a success, because it may contain credentials.
func TestReplyText(t *testing.T) {
	for want, r := range map[string]reply{
		"200":                       {status: 200, body: []byte(`{"code":"secret","api_key":"secret"}`)},
		"403 session_limit_reached": overLimit(limitActions),
		"503 unavailable":           problemReply(503, `"code":"unavailable"`),
	} {
		if got := r.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

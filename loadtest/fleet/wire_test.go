package fleet

import (
	"strings"
	"testing"
)

// A zero is valid; an absent member is not.
func TestUsageNeedsEveryMember(t *testing.T) {
	members := []string{
		"action_count", "max_actions", "remaining_actions", "value_used_usd", "max_value_usd", "value_held_usd", "remaining_value_usd",
	}
	for _, member := range members {
		if _, err := readUsage(done(member, "0")); err != nil {
			t.Errorf("%s of 0: %v", member, err)
		}
		if _, err := readUsage(done(member, "")); err == nil || !strings.Contains(err.Error(), member) {
			t.Errorf("without %s: %v", member, err)
		}
		if _, err := readUsage(done(member, "-1")); err == nil {
			t.Errorf("%s of -1 passes", member)
		}
	}
}

func TestAReadingNeedsEveryMember(t *testing.T) {
	for _, test := range []struct {
		full string
		read func(reply) error
	}{
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
			if err := test.read(problemReply(200, strings.Replace(test.full, member+",", "", 1)+`"id":"s"`)); err == nil {
				t.Errorf("passes without %s", member)
			}
		}
	}
}

func TestTokenPairNeedsEveryMember(t *testing.T) {
	full := tokenPair{AccessToken: "a", RefreshToken: "r", TokenType: "bearer", ExpiresIn: 3600}
	if !full.usable() {
		t.Error("a full pair is not usable")
	}
	for name, drop := range map[string]func(*tokenPair){
		"access_token":  func(p *tokenPair) { p.AccessToken = "" },
		"refresh_token": func(p *tokenPair) { p.RefreshToken = "" },
		"token_type":    func(p *tokenPair) { p.TokenType = "" },
		"expires_in":    func(p *tokenPair) { p.ExpiresIn = 0 },
	} {
		pair := full
		drop(&pair)
		if pair.usable() {
			t.Errorf("usable without %s", name)
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

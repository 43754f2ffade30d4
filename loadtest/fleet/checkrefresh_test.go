package fleet

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestCheckRefresh(t *testing.T) {
	pair := func(access, refresh string) reply {
		return problemReply(200, fmt.Sprintf(`"access_token":%q,"refresh_token":%q,"token_type":"bearer","expires_in":3600`, access, refresh))
	}
	for _, test := range []struct {
		name  string
		reply reply
		want  []rule
	}{
		{"in order", pair("a2", "r2"), nil},
		{"refused", problemReply(401, `"code":"invalid_refresh_token"`), []rule{ruleRefresh}},
		{"no answer", reply{err: errors.New("gone")}, nil},
		{"same refresh token", pair("a2", "r1"), []rule{ruleRefresh}},
		{"same access token", pair("a1", "r2"), []rule{ruleRefresh}},
		{"no refresh token", pair("a2", ""), []rule{ruleRefresh}},
		{"not for bearers", problemReply(200, `"access_token":"a2","refresh_token":"r2","token_type":"mac","expires_in":3600`), []rule{ruleRefresh}},
	} {
		list := checkRefresh(refreshFact{agent: "a", presented: tokenPair{AccessToken: "a1", RefreshToken: "r1"}, reply: test.reply})
		wantRules(t, test.name, list, test.want)
	}
}

// After a lost answer a token returns its successor during the grace time. Later the service may consider it stolen.
func TestCheckRefreshAfterDoubt(t *testing.T) {
	fact := refreshFact{agent: "a", reply: problemReply(401, `"code":"invalid_refresh_token"`)}
	for doubt, want := range map[time.Duration]rule{time.Second: ruleRefresh, refreshGrace: ruleRefresh, refreshGrace + 1: ruleUnchecked} {
		fact.doubt = doubt
		wantRules(t, "after "+doubt.String(), checkRefresh(fact), []rule{want})
	}
}

func TestCheckAgent(t *testing.T) {
	wantRules(t, "after one refresh", checkAgent("a", 1), []rule{ruleUnchecked})
	wantRules(t, "after two", checkAgent("a", 2), nil)
}

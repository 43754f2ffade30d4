package fleet

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"remit/money"
)

func rules(list []violation) []rule {
	var out []rule
	for _, v := range list {
		out = append(out, v.rule)
	}
	return out
}

func wantRules(t *testing.T, name string, list []violation, want []rule) {
	t.Helper()
	if got := rules(list); !slices.Equal(got, want) {
		t.Errorf("%s: broken: %q, want %q", name, got, want)
	}
}

// membersJSON writes members of an object, changed by the arguments: name, text, name, text. A member without a text is left out.
func membersJSON(members map[string]string, changed []string) string {
	for i := 0; i < len(changed); i += 2 {
		members[changed[i]] = changed[i+1]
	}
	text := ""
	for name, value := range members {
		if value != "" {
			text += fmt.Sprintf(`%q:%s,`, name, value)
		}
	}
	return text[:len(text)-1]
}

// usageJSON returns the members of an action's answer: 10 actions of at most 20, 3 USD used and 1 held of 8.
func usageJSON(changed ...string) string {
	return membersJSON(map[string]string{
		"action_count": "10", "max_actions": "20", "remaining_actions": "10",
		"value_used_usd": "3", "value_held_usd": "1", "max_value_usd": "8", "remaining_value_usd": "4",
	}, changed)
}

func done(changed ...string) reply {
	return problemReply(200, usageJSON(changed...))
}

func overLimit(limit string, changed ...string) reply {
	return reply{status: 403, body: fmt.Appendf(nil, `{"code":"session_limit_reached","limit":%q,%s}`, limit, usageJSON(changed...))}
}

func problemReply(status int, members string) reply {
	return reply{status: status, body: []byte("{" + members + "}")}
}

// requestFact is the fact of a request about the transaction of a session of at most 20 actions and 8 USD.
func requestFact(requested effect, r reply, before, possible effect) fact {
	return fact{
		session: "s", transaction: "t", limits: limits{20, 8 * money.USD}, requested: requested, reply: r, window: window{before, possible},
	}
}

func TestCheckAction(t *testing.T) {
	const usd = money.USD
	one, plenty := charge{1, 1 * usd}, effect{charge{100, 100 * usd}, flow{held: 100 * usd}}
	most := func(count int64, value, held money.MicroUSD) effect {
		return effect{charge{count, value}, flow{held: held}}
	}
	for _, test := range []struct {
		name      string
		requested charge
		reply     reply
		possible  effect // all that was ever requested
		want      []rule
	}{
		{"in order", one, done(), plenty, nil},
		{"to the last action", one, done("action_count", "20", "remaining_actions", "0"), plenty, nil},
		{"to the last cent", one, done("value_used_usd", "7", "remaining_value_usd", "0"), plenty, nil},
		{"no answer", one, reply{err: errors.New("gone")}, plenty, nil},
		{"just its own", one, done("action_count", "6", "remaining_actions", "14"), plenty, nil},
		{"500", one, reply{status: 500}, plenty, nil},

		{"too many actions", one, done("action_count", "21", "remaining_actions", "0"), plenty, []rule{ruleExceeded, ruleRemainder}},
		{"too much value", one, done("value_used_usd", "7.000001", "remaining_value_usd", "0"), plenty, []rule{ruleExceeded, ruleRemainder}},
		{"remaining actions", one, done("remaining_actions", "11"), plenty, []rule{ruleRemainder}},
		{"remaining value", one, done("remaining_value_usd", "4.000001"), plenty, []rule{ruleRemainder}},
		{"other action limit", one, done("max_actions", "21", "remaining_actions", "11"), plenty, []rule{ruleLimits}},
		{"other value limit", one, done("max_value_usd", "9", "remaining_value_usd", "5"), plenty, []rule{ruleLimits}},
		{"own action left out", one, done("action_count", "5", "remaining_actions", "15"), plenty, []rule{ruleStale}},
		{"own value left out", one, done("value_used_usd", "2", "remaining_value_usd", "5"), plenty, []rule{ruleStale}},
		{"member missing", one, done("value_held_usd", ""), plenty, []rule{ruleUnreadable}},
		{"no JSON", one, reply{status: 200, body: []byte("ok")}, plenty, []rule{ruleUnreadable}},
		{"201", one, reply{status: 201, body: done().body}, plenty, []rule{ruleUnreadable}},
		{"204", one, reply{status: 204}, plenty, []rule{ruleStatus}},

		{"refused for actions", charge{11, 0}, overLimit(limitActions), plenty, nil},
		{"refused for value", charge{1, 4*usd + 1}, overLimit(limitValue), plenty, nil},
		{"refused for actions that fit", charge{10, 5 * usd}, overLimit(limitActions), plenty, []rule{ruleRefusal}},
		{"refused for value that fits", charge{11, 4 * usd}, overLimit(limitValue), plenty, []rule{ruleRefusal}},
		{"refused for another limit", charge{11, 5 * usd}, overLimit("max_hours"), plenty, []rule{ruleUnreadable}},
		{"refused by a stale count", charge{17, 0}, overLimit(limitActions, "action_count", "4", "remaining_actions", "16"), plenty, []rule{ruleStale}},
		{"refused without usage", charge{11, 0}, problemReply(403, `"code":"session_limit_reached","limit":"max_actions"`), plenty, []rule{ruleUnreadable}},
		{"refused with 409", charge{11, 0}, reply{status: 409, body: overLimit(limitActions).body}, plenty, []rule{ruleStatus}},
		{"400", one, problemReply(400, `"code":"invalid_request"`), plenty, []rule{ruleStatus}},
		{"404 without a body", one, reply{status: 404}, plenty, []rule{ruleStatus}},
		{"not active", one, problemReply(403, `"code":"session_not_active"`), plenty, []rule{ruleStatus}},

		{"just requested", one, done(), most(10, 3*usd, usd), nil},
		{"one action more", one, done(), most(9, 3*usd, usd), []rule{ruleInvented}},
		{"used more", one, done(), most(10, 3*usd-1, usd), []rule{ruleInvented}},
		{"held more", one, done(), most(10, 3*usd, usd-1), []rule{ruleInvented}},
		{"refusal just requested", charge{11, 0}, overLimit(limitActions), most(10, 3*usd, usd), nil},
		{"refusal by an invented count", charge{11, 0}, overLimit(limitActions), most(9, 3*usd, usd), []rule{ruleInvented}},
		{"refusal by an invented hold", charge{11, 0}, overLimit(limitActions), most(10, 3*usd, 0), []rule{ruleInvented}},
	} {
		before := effect{charge: charge{5, 2 * usd}}
		wantRules(t, test.name, checkAction(requestFact(effect{charge: test.requested}, test.reply, before, test.possible)), test.want)
	}
}

func sessionReply(status string, count int, used string, maxCount int, maxValue string) reply {
	return reply{status: 200, body: fmt.Appendf(nil,
		`{"id":"s","status":%q,"action_count":%d,"value_used_usd":%s,"max_actions":%d,"max_value_usd":%s,"value_held_usd":0,"value_overage_usd":0}`,
		status, count, used, maxCount, maxValue)}
}

package main

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// rules returns the broken rules in order.
func rules(list []violation) []rule {
	var out []rule
	for _, v := range list {
		out = append(out, v.rule)
	}
	return out
}

// usageJSON returns the members of an action's answer: 10 actions of at most 20, 3 USD used and 1 held of 8, changed by
// the arguments: name, text, name, text.
func usageJSON(changed ...string) string {
	members := map[string]string{
		"action_count": "10", "max_actions": "20", "remaining_actions": "10",
		"value_used_usd": "3", "value_held_usd": "1", "max_value_usd": "8", "remaining_value_usd": "4",
	}
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

func done(changed ...string) reply {
	return reply{status: 200, body: []byte("{" + usageJSON(changed...) + "}")}
}

func overLimit(limit string, changed ...string) reply {
	return reply{status: 403, body: fmt.Appendf(nil, `{"code":"session_limit_reached","limit":%q,%s}`, limit, usageJSON(changed...))}
}

func problemReply(status int, members string) reply {
	return reply{status: status, body: []byte("{" + members + "}")}
}

func TestCheckAction(t *testing.T) {
	const usd = microsPerUSD
	one := charge{1, 1 * usd}
	for _, test := range []struct {
		name      string
		requested charge
		reply     reply
		want      []rule
	}{
		{"in order", one, done(), nil},
		{"to the last action", one, done("action_count", "20", "remaining_actions", "0"), nil},
		{"to the last cent", one, done("value_used_usd", "7", "remaining_value_usd", "0"), nil},
		{"no answer", one, reply{err: errors.New("gone")}, nil},
		{"just its own", one, done("action_count", "6", "remaining_actions", "14"), nil},
		{"500", one, reply{status: 500}, nil},
		{"503", one, problemReply(503, `"code":"outcome_unknown"`), nil},

		{"too many actions", one, done("action_count", "21", "remaining_actions", "0"), []rule{ruleExceeded, ruleRemainder}},
		{"too much value", one, done("value_used_usd", "7.000001", "remaining_value_usd", "0"), []rule{ruleExceeded, ruleRemainder}},
		{"remaining actions", one, done("remaining_actions", "11"), []rule{ruleRemainder}},
		{"remaining value", one, done("remaining_value_usd", "4.000001"), []rule{ruleRemainder}},
		{"remaining value without what is held", one, done("remaining_value_usd", "5"), []rule{ruleRemainder}},
		{"other action limit", one, done("max_actions", "21", "remaining_actions", "11"), []rule{ruleLimits}},
		{"other value limit", one, done("max_value_usd", "9", "remaining_value_usd", "5"), []rule{ruleLimits}},
		{"own action left out", one, done("action_count", "5", "remaining_actions", "15"), []rule{ruleStale}},
		{"own value left out", one, done("value_used_usd", "2", "remaining_value_usd", "5"), []rule{ruleStale}},
		{"member missing", one, done("value_held_usd", ""), []rule{ruleUnreadable}},
		{"member null", one, done("remaining_actions", "null"), []rule{ruleUnreadable}},
		{"amount as a string", one, done("value_used_usd", `"3"`), []rule{ruleUnreadable}},
		{"amount with noise", one, done("value_used_usd", "3.0000000001"), []rule{ruleUnreadable}},
		{"no JSON", one, reply{status: 200, body: []byte("ok")}, []rule{ruleUnreadable}},
		{"201", one, reply{status: 201, body: done().body}, []rule{ruleUnreadable}},
		{"204", one, reply{status: 204}, []rule{ruleStatus}},
		{"302", one, reply{status: 302}, []rule{ruleStatus}},

		{"refused for actions", charge{11, 0}, overLimit(limitActions), nil},
		{"refused for value", charge{1, 4*usd + 1}, overLimit(limitValue), nil},
		{"refused for actions that fit", charge{10, 5 * usd}, overLimit(limitActions), []rule{ruleRefusal}},
		{"refused for value that fits", charge{11, 4 * usd}, overLimit(limitValue), []rule{ruleRefusal}},
		{"refused for another limit", charge{11, 5 * usd}, overLimit("max_hours"), []rule{ruleUnreadable}},
		{"refused by a stale count", charge{17, 0}, overLimit(limitActions, "action_count", "4", "remaining_actions", "16"), []rule{ruleStale}},
		{"refused without usage", charge{11, 0}, problemReply(403, `"code":"session_limit_reached","limit":"max_actions"`), []rule{ruleUnreadable}},
		{"refused with 409", charge{11, 0}, reply{status: 409, body: overLimit(limitActions).body}, []rule{ruleStatus}},
		{"400", one, problemReply(400, `"code":"invalid_request"`), []rule{ruleStatus}},
		{"401", one, problemReply(401, `"code":"invalid_token"`), []rule{ruleStatus}},
		{"404 without a body", one, reply{status: 404}, []rule{ruleStatus}},
		{"429", one, problemReply(429, `"code":"rate_limited"`), []rule{ruleStatus}},
		{"not active", one, problemReply(403, `"code":"session_not_active"`), []rule{ruleStatus}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := rules(checkAction(actionFact{
				session: "s", limits: limits{20, 8 * usd}, requested: test.requested, reply: test.reply,
				window: window{
					before:   effect{charge: charge{5, 2 * usd}},
					possible: effect{charge: charge{100, 100 * usd}, flow: flow{held: 100 * usd}},
				},
			}))
			if !slices.Equal(got, test.want) {
				t.Errorf("broken: %q, want %q", got, test.want)
			}
		})
	}
}

// The check finds an answer that counts more than was ever requested, in a success and in a refusal.
func TestCheckActionAgainstCeiling(t *testing.T) {
	const usd = microsPerUSD
	for _, test := range []struct {
		name    string
		reply   reply
		ceiling charge
		held    micros
		want    []rule
	}{
		{"just requested", done(), charge{10, 3 * usd}, usd, nil},
		{"one action more", done(), charge{9, 3 * usd}, usd, []rule{ruleInvented}},
		{"used more", done(), charge{10, 3*usd - 1}, usd, []rule{ruleInvented}},
		{"held more", done(), charge{10, 3 * usd}, usd - 1, []rule{ruleInvented}},
		{"refusal just requested", overLimit(limitActions), charge{10, 3 * usd}, usd, nil},
		{"refusal by an invented count", overLimit(limitActions), charge{9, 3 * usd}, usd, []rule{ruleInvented}},
		{"refusal by an invented hold", overLimit(limitActions), charge{10, 3 * usd}, 0, []rule{ruleInvented}},
	} {
		t.Run(test.name, func(t *testing.T) {
			requested := charge{1, 0}
			if test.reply.outcome() == refused {
				requested.count = 11
			}
			got := rules(checkAction(actionFact{
				session: "s", limits: limits{20, 8 * usd}, requested: requested, reply: test.reply,
				window: window{possible: effect{test.ceiling, flow{held: test.held}}},
			}))
			if !slices.Equal(got, test.want) {
				t.Errorf("broken: %q, want %q", got, test.want)
			}
		})
	}
}

// closed is the fact of a session that ended normally. Its 10 actions and 3.5 USD were all acknowledged.
func closed() sessionFact {
	return sessionFact{
		session: "s", limits: limits{20, 8 * microsPerUSD}, window: uncertain(charge{10, 3_500_000}, charge{}),
		before: sessionReply("active", 10, "3.5", 20, "8"),
		end:    problemReply(200, `"id":"s","status":"completed","ended_at":"2026-01-02T03:04:05.678Z"`),
		after:  sessionReply("completed", 10, "3.5", 20, "8"),
		late:   problemReply(403, `"code":"session_not_active","session_status":"completed"`),
	}
}

// uncertain is the window of a session with acknowledged charges, and others of unknown outcome.
func uncertain(acknowledged, unknown charge) window {
	return window{effect{charge: acknowledged}, effect{charge: acknowledged.plus(unknown)}}
}

func sessionReply(status string, count int, used string, maxCount int, maxValue string) reply {
	return reply{status: 200, body: fmt.Appendf(nil,
		`{"id":"s","status":%q,"action_count":%d,"value_used_usd":%s,"max_actions":%d,"max_value_usd":%s,"value_held_usd":0,"value_overage_usd":0}`,
		status, count, used, maxCount, maxValue)}
}

func TestCheckSession(t *testing.T) {
	gone := reply{err: errors.New("gone")}
	for _, test := range []struct {
		name   string
		change func(*sessionFact)
		want   []rule
	}{
		{"in order", func(*sessionFact) {}, nil},
		{"full", func(f *sessionFact) {
			f.limits = limits{10, 3_500_000}
			f.before, f.after = sessionReply("active", 10, "3.5", 10, "3.5"), sessionReply("completed", 10, "3.5", 10, "3.5")
		}, nil},
		{"doubt that was not charged", func(f *sessionFact) { f.window = uncertain(charge{10, 3_500_000}, charge{2, 500_000}) }, nil},
		{"doubt that was charged", func(f *sessionFact) {
			f.window = uncertain(charge{8, 3_000_000}, charge{2, 500_000})
		}, nil},
		{"doubt charged between the readings", func(f *sessionFact) {
			f.window, f.after = uncertain(charge{10, 3_500_000}, charge{2, 500_000}), sessionReply("completed", 12, "4", 20, "8")
		}, nil},

		{"action lost", func(f *sessionFact) { f.before = sessionReply("active", 9, "3.5", 20, "8") }, []rule{ruleLost}},
		{"value lost", func(f *sessionFact) { f.before = sessionReply("active", 10, "3.499999", 20, "8") }, []rule{ruleLost}},
		{"lost at the end", func(f *sessionFact) { f.after = sessionReply("completed", 0, "0", 20, "8") }, []rule{ruleLost}},
		{"action too many", func(f *sessionFact) { f.before = sessionReply("active", 11, "3.5", 20, "8") }, []rule{ruleSurplus}},
		{"value too much", func(f *sessionFact) { f.after = sessionReply("completed", 10, "3.500001", 20, "8") }, []rule{ruleSurplus}},
		{"more than the doubt", func(f *sessionFact) {
			f.window, f.before = uncertain(charge{10, 3_500_000}, charge{2, 500_000}), sessionReply("active", 13, "3.5", 20, "8")
		}, []rule{ruleSurplus}},
		{"over the action limit", func(f *sessionFact) {
			f.window, f.before = uncertain(charge{10, 3_500_000}, charge{50, 0}), sessionReply("active", 21, "3.5", 20, "8")
		}, []rule{ruleExceeded}},
		{"over the value limit", func(f *sessionFact) {
			f.window, f.after = uncertain(charge{10, 3_500_000}, charge{0, 9_000_000}), sessionReply("completed", 10, "8.000001", 20, "8")
		}, []rule{ruleExceeded}},
		{"other limits", func(f *sessionFact) { f.before = sessionReply("active", 10, "3.5", 21, "8") }, []rule{ruleLimits}},
		{"not found", func(f *sessionFact) { f.before = problemReply(404, `"code":"not_found"`) }, []rule{ruleStatus}},
		{"unreadable", func(f *sessionFact) { f.after = problemReply(200, `"id":"s","status":"completed"`) }, []rule{ruleUnreadable}},
		{"no reading", func(f *sessionFact) { f.before = gone }, []rule{ruleUnchecked}},
		{"ended too early", func(f *sessionFact) { f.before = sessionReply("completed", 10, "3.5", 20, "8") }, []rule{ruleEnd}},
		{"still active", func(f *sessionFact) { f.after = sessionReply("active", 10, "3.5", 20, "8") }, []rule{ruleEnd}},
		{"end refused", func(f *sessionFact) { f.end = problemReply(409, `"code":"session_not_active"`) }, []rule{ruleEnd}},
		{"end of another", func(f *sessionFact) {
			f.end = problemReply(200, `"id":"t","status":"completed","ended_at":"2026-01-02T03:04:05Z"`)
		}, []rule{ruleEnd}},
		{"end without a time", func(f *sessionFact) { f.end = problemReply(200, `"id":"s","status":"completed"`) }, []rule{ruleEnd}},
		{"no answer to the end", func(f *sessionFact) { f.end = problemReply(503, "") }, []rule{ruleUnchecked}},
		{"late action done", func(f *sessionFact) { f.late = done() }, []rule{ruleActedAfter}},
		{"late action refused for a limit", func(f *sessionFact) { f.late = overLimit(limitActions) }, []rule{ruleActedAfter}},
		{"late action refused as expired", func(f *sessionFact) {
			f.late = problemReply(403, `"code":"session_not_active","session_status":"expired"`)
		}, []rule{ruleActedAfter}},
		{"late action refused with 409", func(f *sessionFact) { f.late.status = 409 }, []rule{ruleActedAfter}},
		{"no answer to the late action", func(f *sessionFact) { f.late = gone }, []rule{ruleUnchecked}},
	} {
		t.Run(test.name, func(t *testing.T) {
			fact := closed()
			test.change(&fact)
			if got := rules(checkSession(fact)); !slices.Equal(got, test.want) {
				t.Errorf("broken: %q, want %q", got, test.want)
			}
		})
	}
}

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
		t.Run(test.name, func(t *testing.T) {
			list := checkRefresh(refreshFact{agent: "a", presented: tokenPair{AccessToken: "a1", RefreshToken: "r1"}, reply: test.reply})
			if got := rules(list); !slices.Equal(got, test.want) {
				t.Errorf("broken: %q, want %q", got, test.want)
			}
		})
	}
}

// After a lost answer a token returns its successor during the grace time. Later the service may consider it stolen.
func TestCheckRefreshAfterDoubt(t *testing.T) {
	fact := refreshFact{agent: "a", reply: problemReply(401, `"code":"invalid_refresh_token"`)}
	for doubt, want := range map[time.Duration]rule{time.Second: ruleRefresh, refreshGrace: ruleRefresh, refreshGrace + 1: ruleUnchecked} {
		fact.doubt = doubt
		if got := rules(checkRefresh(fact)); !slices.Equal(got, []rule{want}) {
			t.Errorf("after %s: %q, want %q", doubt, got, want)
		}
	}
}

func TestCheckAgent(t *testing.T) {
	if got := rules(checkAgent("a", 1)); !slices.Equal(got, []rule{ruleUnchecked}) {
		t.Errorf("after one refresh: %q", got)
	}
	if got := checkAgent("a", 2); got != nil {
		t.Errorf("after two: %q", got)
	}
}

// The ledger bounds an answer by what was acknowledged before the request, and by what can have happened since.
func TestLedger(t *testing.T) {
	var l ledger
	of := func(count int64, value micros) effect { return effect{charge: charge{count, value}} }
	ok, lost, noRoom := done(), reply{err: errors.New("gone")}, overLimit(limitValue)
	if before := l.send(of(1, 10)); before != (effect{}) {
		t.Errorf("before the first: %v", before)
	}
	l.send(of(2, 20))
	l.send(of(4, 40))
	if possible := l.finish(of(1, 10), of(1, 10), ok); possible != of(7, 70) {
		t.Errorf("possible with two in flight: %v", possible)
	}
	if possible := l.finish(of(2, 20), of(2, 20), noRoom); possible != of(5, 50) {
		t.Errorf("what is refused is not possible, got %v", possible)
	}
	if possible := l.finish(of(4, 40), of(4, 40), lost); possible != of(5, 50) {
		t.Errorf("a request of unknown outcome is possible, got %v", possible)
	}
	if before := l.send(of(8, 80)); before != of(1, 10) {
		t.Errorf("before is what was acknowledged, got %v", before)
	}
	l.finish(of(8, 80), of(8, 80), problemReply(400, `"code":"invalid_request"`))
	want := entries{
		acknowledged: tally{1, of(1, 10)}, unknown: tally{1, of(4, 40)}, byValue: tally{1, of(2, 20)},
	}
	if got := l.sums(); got != want {
		t.Errorf("sums %+v, want %+v", got, want)
	}
}

// An acknowledged request may have done less than it requested. One of unknown outcome counts with all that it requested.
func TestLedgerEntersWhatWasDone(t *testing.T) {
	var l ledger
	requested := effect{flow: flow{committed: 1, freed: 10, spent: 30, over: 20}}
	did := effect{flow: flow{committed: 1, freed: 10, spent: 25, over: 5}}
	l.send(requested)
	if possible := l.finish(requested, did, done()); possible != did {
		t.Errorf("acknowledged: %+v", possible)
	}
	l.send(requested)
	if possible := l.finish(requested, did, reply{err: errors.New("gone")}); possible != did.plus(requested) {
		t.Errorf("unknown outcome: %+v", possible)
	}
}

// While value moves from held to used and back, each answer lies between the acknowledged and the possible state.
func TestWindow(t *testing.T) {
	w := window{
		before:   effect{charge{5, 10}, flow{held: 100, freed: 30, spent: 20, returned: 5, over: 3, overReturned: 1}},
		possible: effect{charge{9, 15}, flow{held: 140, freed: 60, spent: 45, returned: 12, over: 9, overReturned: 2}},
	}
	if got, want := w.least(), (state{count: 5, used: 10 + 20 - 12, held: 100 - 60, over: 3 - 2}); got != want {
		t.Errorf("least %+v, want %+v", got, want)
	}
	if got, want := w.most(), (state{count: 9, used: 15 + 45 - 5, held: 140 - 30, over: 9 - 1}); got != want {
		t.Errorf("most %+v, want %+v", got, want)
	}
}

func TestAuditKeepsTheFirstAndCountsAll(t *testing.T) {
	var a audit
	if !a.clean() {
		t.Error("not clean at first")
	}
	for range keptViolations + 5 {
		a.add([]violation{found(ruleLost, "s", "")})
	}
	a.add([]violation{found(ruleUnchecked, "s", "")})
	if len(a.kept) != keptViolations || a.total() != keptViolations+6 || a.clean() {
		t.Errorf("kept %d, counted %v", len(a.kept), a.counts)
	}
	var gap audit
	gap.add([]violation{found(ruleUnchecked, "s", "")})
	if gap.clean() {
		t.Error("clean although something could not be checked")
	}
}

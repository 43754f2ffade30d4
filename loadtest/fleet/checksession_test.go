package fleet

import (
	"errors"
	"testing"

	"remit/money"
)

// closed is the fact of a session that ended normally. Its 10 actions and 3.5 USD were all acknowledged.
func closed() sessionFact {
	return sessionFact{
		session: "s", limits: limits{20, 8 * money.USD}, window: uncertain(charge{10, 3_500_000}, charge{}),
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
		{"doubt that was charged", func(f *sessionFact) { f.window = uncertain(charge{8, 3_000_000}, charge{2, 500_000}) }, nil},
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
		fact := closed()
		test.change(&fact)
		wantRules(t, test.name, checkSession(fact), test.want)
	}
}

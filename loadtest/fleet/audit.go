package fleet

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// keptViolations is how many violations are printed. All are counted.
const keptViolations = 20

// audit collects violations. Its methods are safe for concurrent use; read its fields only after the workers have ended.
type audit struct {
	mu     sync.Mutex
	kept   []violation // the first
	counts map[rule]int64
}

// add adds the violations of one check.
func (a *audit) add(list []violation) {
	if len(list) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts == nil {
		a.counts = map[rule]int64{}
	}
	for _, v := range list {
		a.counts[v.rule]++
		if len(a.kept) < keptViolations {
			a.kept = append(a.kept, v)
		}
	}
}

// clean reports whether everything was checked and no violation found.
func (a *audit) clean() bool { return a.total() == 0 }

// total is the number of violations, including what could not be checked.
func (a *audit) total() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	var n int64
	for _, count := range a.counts {
		n += count
	}
	return n
}

// broken returns the broken rules in alphabetical order.
func (a *audit) broken() []rule { return slices.Sorted(maps.Keys(a.counts)) }

// rule names what a violation breaks.
type rule string

const (
	ruleLost         rule = "acknowledged but not stored"
	ruleSurplus      rule = "stored, but neither acknowledged nor of unknown outcome"
	ruleExceeded     rule = "limit exceeded"
	ruleLimits       rule = "limits differ from those the session was created with"
	ruleRemainder    rule = "remaining is not max - used - held"
	ruleStale        rule = "answer omits what was acknowledged before"
	ruleInvented     rule = "answer counts what was never requested"
	ruleRefusal      rule = "refused although it was within the limits"
	ruleStatus       rule = "unexpected answer"
	ruleUnreadable   rule = "answer violates the API description"
	ruleRefresh      rule = "refresh token or its successor does not work"
	ruleEnd          rule = "session did not end"
	ruleActedAfter   rule = "action on an ended session was not refused as such"
	ruleToken        rule = "a valid access token was refused"
	ruleInvalidToken rule = "an invalid access token was accepted"
	ruleIdentity     rule = "an answer is about another agent"
	ruleSequence     rule = "sequence numbers have gaps or repeat"
	ruleSum          rule = "the session and its transactions do not add up"
	ruleStep         rule = "a step of a transaction had another effect"
	rulePart         rule = "what was set aside for a child or a session did not come back"
	ruleSuspended    rule = "a suspension or its end was acknowledged and not obeyed"
	ruleBudget       rule = "the budget and its sessions do not add up"
	ruleUsage        rule = "the lines of usage do not add up to what the sessions show"
	ruleClient       rule = "the SDK reports another outcome than the service sent"

	// ruleUnchecked is not a violation: there was no answer to check.
	ruleUnchecked rule = "could not be checked"
)

// violation is one broken rule.
type violation struct {
	rule    rule
	subject string // a session or an agent
	detail  string
}

func (v violation) String() string { return string(v.rule) + ": " + v.subject + ": " + v.detail }

// found returns a violation with a formatted detail.
func found(r rule, subject, format string, args ...any) violation {
	return violation{rule: r, subject: subject, detail: fmt.Sprintf(format, args...)}
}

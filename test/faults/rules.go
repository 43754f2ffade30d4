package faults

import "fmt"

// Rule names what a violation breaks.
type Rule string

// The rules that Check and Scenario verify.
const (
	RuleLost       Rule = "acknowledged but not stored"
	RuleSurplus    Rule = "stored, but neither acknowledged nor of unknown outcome"
	RuleLimit      Rule = "limit exceeded"
	RuleKey        Rule = "an idempotency key has two outcomes"
	RuleRevoked    Rule = "usable after its revocation or end"
	RuleSuccessors Rule = "two successors of one refresh token"
	RuleLive       Rule = "two live refresh tokens in a family"
	RuleBothEnds   Rule = "a transaction was both committed and rolled back"
	RuleStatus     Rule = "a transaction has another status than was acknowledged"
	RuleAnswer     Rule = "unexpected answer"
	RuleDenied     Rule = "unauthorized, or not found"
	RuleMissing    Rule = "charged, but not stored"
	RuleUnread     Rule = "unreadable"
	RuleRecovery   Rule = "not recovered in time"
	RuleGoroutines Rule = "goroutines leaked"
	RuleConns      Rule = "connections leaked"
	RuleFiles      Rule = "file descriptors leaked"
	RuleExit       Rule = "an instance did not stop cleanly"
	RuleUsage      Rule = "usage differs from its session"
	RuleLedger     Rule = "a call does not cost what the provider's ledger says"
)

// Violation is one broken rule.
type Violation struct {
	Rule    Rule
	Subject string
	Detail  string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Rule, v.Subject, v.Detail) }

// violationOf returns a violation with a formatted detail.
func violationOf(r Rule, subject, format string, args ...any) Violation {
	return Violation{r, subject, fmt.Sprintf(format, args...)}
}

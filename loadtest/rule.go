package main

import "fmt"

// rule names what was broken.
type rule string

const (
	ruleLost         rule = "acknowledged but not stored"
	ruleSurplus      rule = "stored but never acknowledged or in doubt"
	ruleExceeded     rule = "limit exceeded"
	ruleLimits       rule = "limits are not those the session was created with"
	ruleRemainder    rule = "remaining is not max - used - held"
	ruleStale        rule = "answer leaves out what was acknowledged before"
	ruleInvented     rule = "answer counts what nobody requested"
	ruleRefusal      rule = "refused although it fitted"
	ruleStatus       rule = "unexpected answer"
	ruleUnreadable   rule = "answer does not follow the contract"
	ruleRefresh      rule = "refresh token or its successor does not work"
	ruleEnd          rule = "session did not end"
	ruleActedAfter   rule = "action after the end was not refused as such"
	ruleToken        rule = "a valid access token was refused"
	ruleInvalidToken rule = "an access token that cannot be valid was accepted"
	ruleIdentity     rule = "an answer is about somebody else"
	ruleSequence     rule = "sequence numbers have gaps or repeat"
	ruleSum          rule = "the session and its transactions do not add up"
	ruleStep         rule = "a step of a transaction did something else"
	ruleClient       rule = "the SDK says otherwise than the wire"

	// ruleUnchecked is no accusation: there was no answer to check.
	ruleUnchecked rule = "could not be checked"
)

// violation is one broken rule.
type violation struct {
	rule    rule
	subject string // a session or an agent
	detail  string
}

func (v violation) String() string { return string(v.rule) + ": " + v.subject + ": " + v.detail }

// found makes a violation with a formatted detail.
func found(r rule, subject, format string, args ...any) violation {
	return violation{rule: r, subject: subject, detail: fmt.Sprintf(format, args...)}
}

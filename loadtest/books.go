package main

import (
	"fmt"
	"net/http"
	"time"
)

// The books: what the fleet was told, against what the service keeps. All checks are functions of recorded facts.
//
// A service that loses a charge, charges twice, exceeds a limit, refuses what would have fitted, or answers from stale
// or invented state is found out, because each answer is bounded from both sides: all that was acknowledged before the
// request was sent must be in it, and nothing that was never asked for can be.

// rule names what was broken.
type rule string

const (
	ruleLost       rule = "acknowledged but not stored"
	ruleSurplus    rule = "stored but never acknowledged or in doubt"
	ruleExceeded   rule = "limit exceeded"
	ruleLimits     rule = "limits are not those the session was created with"
	ruleRemainder  rule = "remaining is not max - used - held"
	ruleStale      rule = "answer leaves out what was acknowledged before"
	ruleInvented   rule = "answer counts what nobody asked for"
	ruleRefusal    rule = "refused although it fitted"
	ruleStatus     rule = "unexpected answer"
	ruleUnreadable rule = "answer does not follow the contract"
	ruleRefresh    rule = "refresh token or its successor does not work"
	ruleEnd        rule = "session did not end"
	ruleActedAfter rule = "action after the end was not refused as such"
	ruleToken      rule = "a valid access token was refused"
	ruleSpoilt     rule = "an access token that cannot be valid was accepted"
	ruleIdentity   rule = "an answer is about somebody else"
	ruleSequence   rule = "sequence numbers have gaps or repeat"
	ruleSum        rule = "the session and its transactions do not add up"
	ruleStep       rule = "a step of a transaction did something else"
	ruleClient     rule = "the SDK says otherwise than the wire"

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

// actionFact is one answered or unanswered action.
type actionFact struct {
	session string
	limits  limits
	asked   charge
	reply   reply
	window  // from the ledger
}

// checkAction judges one action by its answer.
func checkAction(f actionFact) []violation {
	switch f.reply.outcome() {
	case acknowledged:
		used, err := readUsage(f.reply)
		if err != nil || f.reply.status != http.StatusOK {
			return []violation{found(ruleUnreadable, f.session, "action answered %d: %v", f.reply.status, err)}
		}
		// What was just acknowledged must itself be in the answer.
		return checkUsage(f, used, f.asked)
	case refused:
		return checkRefused(f)
	}
	return checkUnanswered(f.session, f.reply)
}

// checkRefused judges the refusal of an action, or of a transaction's begin.
func checkRefused(f actionFact) []violation {
	p := readProblem(f.reply)
	if f.reply.status != http.StatusForbidden || p.Code != codeLimitReached {
		return []violation{found(ruleStatus, f.session, "action refused with %s", f.reply)}
	}
	if err := p.complete(); err != nil {
		return []violation{found(ruleUnreadable, f.session, "action refused: %v", err)}
	}
	return append(checkUsage(f, p.usage, charge{}), checkRefusal(f, p)...)
}

// checkUnanswered finds answers that are neither success nor refusal nor failure.
func checkUnanswered(subject string, r reply) []violation {
	if r.status != 0 && r.status < http.StatusInternalServerError {
		return []violation{found(ruleStatus, subject, "answered %s", r)}
	}
	return nil
}

// checkUsage judges the state of a session that an answer told, which must include what was acknowledged before and
// what the answer itself acknowledges.
func checkUsage(f actionFact, u usage, own charge) []violation {
	var out []violation
	least, most := f.least(), f.most()
	least.count, least.used = least.count+own.count, least.used+own.value
	if u.MaxActions != f.limits.actions || u.MaxValue != f.limits.value {
		out = append(out, found(ruleLimits, f.session, "says %d actions, %s USD; created with %d, %s",
			u.MaxActions, u.MaxValue, f.limits.actions, f.limits.value))
	}
	if u.ActionCount > u.MaxActions || u.ValueUsed+u.ValueHeld > u.MaxValue {
		out = append(out, found(ruleExceeded, f.session, "%d of %d actions, %s USD used and %s held of %s",
			u.ActionCount, u.MaxActions, u.ValueUsed, u.ValueHeld, u.MaxValue))
	}
	if u.RemainingActions != u.MaxActions-u.ActionCount || u.RemainingValue != u.MaxValue-u.ValueUsed-u.ValueHeld {
		out = append(out, found(ruleRemainder, f.session, "%d - %d leaves %d actions; %s - %s - %s leaves %s USD",
			u.MaxActions, u.ActionCount, u.RemainingActions, u.MaxValue, u.ValueUsed, u.ValueHeld, u.RemainingValue))
	}
	if u.ActionCount < least.count || u.ValueUsed < least.used || u.ValueHeld < least.held {
		out = append(out, found(ruleStale, f.session, "says %d actions, %s USD used and %s held; already acknowledged: %s",
			u.ActionCount, u.ValueUsed, u.ValueHeld, least))
	}
	if u.ActionCount > most.count || u.ValueUsed > most.used || u.ValueHeld > most.held {
		out = append(out, found(ruleInvented, f.session, "says %d actions, %s USD used and %s held; asked for so far: %s",
			u.ActionCount, u.ValueUsed, u.ValueHeld, most))
	}
	return out
}

// checkRefusal judges whether the limit that a refusal names was really in the way.
func checkRefusal(f actionFact, p problem) []violation {
	switch {
	case p.Limit == limitActions && p.ActionCount+f.asked.count <= p.MaxActions:
		return []violation{found(ruleRefusal, f.session, "%d more on %d of %d actions", f.asked.count, p.ActionCount, p.MaxActions)}
	case p.Limit == limitValue && p.ValueUsed+p.ValueHeld+f.asked.value <= p.MaxValue:
		return []violation{found(ruleRefusal, f.session, "%s USD more on %s used and %s held of %s",
			f.asked.value, p.ValueUsed, p.ValueHeld, p.MaxValue)}
	case p.Limit != limitActions && p.Limit != limitValue:
		return []violation{found(ruleUnreadable, f.session, "action refused for limit %q", p.Limit)}
	}
	return nil
}

// sessionFact is all that was learnt of one session when the run was over.
type sessionFact struct {
	session string
	limits  limits
	window        // from the ledger: what was acknowledged, and what was in doubt beside
	before  reply // of reading it, still active
	end     reply // of ending it
	after   reply // of reading it again
	late    reply // of an action after its end
}

// checkSession judges a session's final state against the client's own account.
func checkSession(f sessionFact) []violation {
	return append(checkStored(f, f.before, statusActive), checkEnded(f)...)
}

// checkEnded judges the end of a session and its state from then on.
func checkEnded(f sessionFact) []violation {
	out := checkEnd(f)
	out = append(out, checkStored(f, f.after, statusCompleted)...)
	return append(out, checkLate(f)...)
}

// checkStored judges one reading of the session. Each acknowledged step is in it exactly once; of those in doubt, any
// part. Once it has ended, nothing is held.
func checkStored(f sessionFact, r reply, status string) []violation {
	switch r.outcome() {
	case unknown:
		return []violation{found(ruleUnchecked, f.session, "reading it when %s: %s", status, r)}
	case refused:
		return []violation{found(ruleStatus, f.session, "reading it when %s: %s", status, r)}
	}
	s, err := readSession(r)
	if err != nil {
		return []violation{found(ruleUnreadable, f.session, "reading it when %s: %v", status, err)}
	}
	var out []violation
	if s.Status != status {
		out = append(out, found(ruleEnd, f.session, "reads %q, not %q", s.Status, status))
	}
	if s.MaxActions != f.limits.actions || s.MaxValue != f.limits.value {
		out = append(out, found(ruleLimits, f.session, "stored %d actions, %s USD; created with %d, %s",
			s.MaxActions, s.MaxValue, f.limits.actions, f.limits.value))
	}
	if s.ActionCount > s.MaxActions || s.ValueUsed+s.ValueHeld > s.MaxValue {
		out = append(out, found(ruleExceeded, f.session, "%d of %d actions, %s USD used and %s held of %s",
			s.ActionCount, s.MaxActions, s.ValueUsed, s.ValueHeld, s.MaxValue))
	}
	stored, least, most := state{s.ActionCount, s.ValueUsed, s.ValueHeld, s.Overage}, f.least(), f.most()
	if status != statusActive {
		least.held, most.held = 0, 0
	}
	if stored.count < least.count || stored.used < least.used || stored.held < least.held || stored.over < least.over {
		out = append(out, found(ruleLost, f.session, "stored %s; acknowledged %s", stored, least))
	}
	if stored.count > most.count || stored.used > most.used || stored.held > most.held || stored.over > most.over {
		out = append(out, found(ruleSurplus, f.session, "stored %s; acknowledged or in doubt %s", stored, most))
	}
	return out
}

// checkEnd judges the answer to ending the session.
func checkEnd(f sessionFact) []violation {
	switch f.end.outcome() {
	case unknown:
		return []violation{found(ruleUnchecked, f.session, "ending it: %s", f.end)}
	case refused:
		return []violation{found(ruleEnd, f.session, "ending it: %s", f.end)}
	}
	e := readEnd(f.end)
	if _, err := time.Parse(time.RFC3339, e.EndedAt); err != nil || e.Status != statusCompleted || e.ID != f.session {
		return []violation{found(ruleEnd, f.session, "answered id %q, status %q, ended_at %q", e.ID, e.Status, e.EndedAt)}
	}
	return nil
}

// checkLate judges the answer to an action that came after the end.
func checkLate(f sessionFact) []violation {
	if f.late.outcome() == unknown {
		return []violation{found(ruleUnchecked, f.session, "action after the end: %s", f.late)}
	}
	p := readProblem(f.late)
	if f.late.status != http.StatusForbidden || p.Code != codeNotActive || p.SessionStatus != statusCompleted {
		return []violation{found(ruleActedAfter, f.session, "answered %s, session_status %q", f.late, p.SessionStatus)}
	}
	return nil
}

// refreshFact is one refresh of an agent's tokens.
type refreshFact struct {
	agent     string
	presented tokenPair
	doubt     time.Duration // since the same token was first presented without an answer; 0: it was not
	reply     reply
}

// refreshGrace is how long the service returns the same successor for a token whose answer got lost: a little less than
// its default.
const refreshGrace = 55 * time.Second

// checkRefresh judges the answer to a refresh; one without an answer is tried again later and judged then. As each
// refresh presents the token that the one before it returned, a second success shows that a successor works. No token
// is quoted in what is found.
func checkRefresh(f refreshFact) []violation {
	switch f.reply.outcome() {
	case unknown:
		return nil
	case refused:
		if f.doubt > refreshGrace {
			return []violation{found(ruleUnchecked, f.agent, "refresh refused with %s, %s after one without an answer", f.reply, f.doubt)}
		}
		return []violation{found(ruleRefresh, f.agent, "refused with %s", f.reply)}
	}
	next := readTokens(f.reply)
	switch {
	case !next.usable():
		return []violation{found(ruleRefresh, f.agent, "token pair is incomplete")}
	case next.RefreshToken == f.presented.RefreshToken, next.AccessToken == f.presented.AccessToken:
		return []violation{found(ruleRefresh, f.agent, "a token came back unchanged")}
	}
	return nil
}

// checkAgent judges how often an agent's refresh worked: once with its first token, and once with a successor.
func checkAgent(agent string, refreshes int) []violation {
	if refreshes < 2 {
		return []violation{found(ruleUnchecked, agent, "%d refreshes worked, so no successor was presented", refreshes)}
	}
	return nil
}

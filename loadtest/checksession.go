package main

import (
	"net/http"
	"time"
)

// The books: what the fleet was told, against what the service keeps. All checks are functions of recorded facts.
//
// A service that loses a charge, charges twice, exceeds a limit, refuses what would have fitted, or answers from stale
// or invented state is found out, because each answer is bounded from both sides: all that was acknowledged before the
// request was sent must be in it, and nothing that was never requested can be.

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

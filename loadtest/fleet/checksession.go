package fleet

import (
	"net/http"
	"time"
)

// Reconciliation compares what callers got with what the service stores. All checks are functions of recorded facts.
//
// They detect a service that loses a charge, charges twice, exceeds a limit, refuses a request within its limits, or answers
// from stale or invented state, because each answer is bounded from both sides: it must include everything acknowledged
// before the request was sent, and nothing that was never requested.

// sessionFact is what is known of one session at the end of the run.
type sessionFact struct {
	session string
	limits  limits
	window        // from the ledger: what was acknowledged, and what has an unknown outcome
	before  reply // of reading it, still active
	end     reply // of ending it
	after   reply // of reading it again
	late    reply // of an action after its end
}

// checkSession compares a session's final state with the client's ledger.
func checkSession(f sessionFact) []violation {
	return append(checkStored(f, f.before, statusActive), checkEnded(f)...)
}

// checkEnded checks the end of a session and its state after that.
func checkEnded(f sessionFact) []violation {
	out := checkEnd(f)
	out = append(out, checkStored(f, f.after, statusCompleted)...)
	return append(out, checkLate(f)...)
}

// checkStored checks one reading of the session. It must include each acknowledged step exactly once, and may include any of
// unknown outcome. After its end, the session holds nothing.
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
	out = append(out, s.checkLimits(f.session)...)
	stored, least, most := state{s.ActionCount, s.ValueUsed, s.ValueHeld, s.Overage}, f.least(), f.most()
	if status != statusActive {
		least.held, most.held = 0, 0
	}
	return append(out, checkBetween(f.session, stored, least, most)...)
}

// checkLimits checks that a session exceeds no limit.
func (c counts) checkLimits(session string) []violation {
	if c.ActionCount > c.MaxActions || c.ValueUsed+c.ValueHeld > c.MaxValue {
		return []violation{found(ruleExceeded, session, "%d of %d actions, %s USD used and %s held of %s",
			c.ActionCount, c.MaxActions, c.ValueUsed, c.ValueHeld, c.MaxValue)}
	}
	return nil
}

// checkBetween checks that what is stored is at least what was acknowledged, and at most what may have happened.
func checkBetween(session string, stored, least, most state) (out []violation) {
	if stored.count < least.count || stored.used < least.used || stored.held < least.held || stored.over < least.over {
		out = append(out, found(ruleLost, session, "stored %s; acknowledged %s", stored, least))
	}
	if stored.count > most.count || stored.used > most.used || stored.held > most.held || stored.over > most.over {
		out = append(out, found(ruleSurplus, session, "stored %s; acknowledged or of unknown outcome %s", stored, most))
	}
	return out
}

// checkEnd checks the answer to ending the session.
func checkEnd(f sessionFact) []violation {
	switch f.end.outcome() {
	case unknown:
		return []violation{found(ruleUnchecked, f.session, "ending it: %s", f.end)}
	case refused:
		return []violation{found(ruleEnd, f.session, "ending it: %s", f.end)}
	}
	e := decoded[endAnswer](f.end.body)
	if _, err := time.Parse(time.RFC3339, e.EndedAt); err != nil || e.Status != statusCompleted || e.ID != f.session {
		return []violation{found(ruleEnd, f.session, "answered id %q, status %q, ended_at %q", e.ID, e.Status, e.EndedAt)}
	}
	return nil
}

// checkLate checks the answer to an action after the end.
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

package fleet

import "net/http"

// checkTurned checks the answer to a suspension or to its end. It may be refused only because the session's end came first.
func checkTurned(f fact) []violation {
	if f.ending && f.reply.status == http.StatusConflict && readProblem(f.reply).Code == codeNotActive {
		return nil
	}
	return checkAccepted(f.session, f.reply)
}

// checkDone checks something new that was done: no suspension was in force all the time.
func (f fact) checkDone() []violation {
	if f.suspended {
		return []violation{found(ruleSuspended, f.session, "%s, although its suspension was acknowledged before", f.reply)}
	}
	return nil
}

// checkSuspended checks a refusal for a suspension: there was one, or it is not known that there was none.
func (f fact) checkSuspended() []violation {
	if !f.maybeSuspended {
		return []violation{found(ruleSuspended, f.session, "refused with %s, although every suspension was acknowledged to have ended", f.reply)}
	}
	return nil
}

// checkChild checks the answer to a child's creation, which a suspension forbids.
func checkChild(f fact) []violation {
	switch {
	case f.reply.outcome() == acknowledged:
		return f.checkDone()
	case f.reply.outcome() == refused && readProblem(f.reply).Code == codeSuspended:
		return f.checkSuspended()
	}
	return checkPart(f)
}

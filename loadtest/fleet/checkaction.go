package fleet

import "net/http"

// fact is a request about a session, and its reply.
type fact struct {
	session     string
	transaction string // that is committed or rolled back
	limits      limits // of a session in a tree: the most that it may have
	requested   effect
	reply       reply
	window      // from its own ledger; of a session in a tree, to those of all its descendants
	inTree      bool
	ending      bool // an end of it was sent; only known in a tree
	barring          // by the suspensions of it and of those above
}

// needs is what the request needs of the session's limits.
func (f fact) needs() charge { return charge{f.requested.count, f.requested.value + f.requested.held} }

// checkAction checks the answer to an action.
func checkAction(f fact) []violation {
	switch f.reply.outcome() {
	case acknowledged:
		used, err := readUsage(f.reply)
		if err != nil || f.reply.status != http.StatusOK {
			return []violation{found(ruleUnreadable, f.session, "action answered %d: %v", f.reply.status, err)}
		}
		// The answer must include the action itself.
		return append(f.checkDone(), checkUsage(f, used, f.requested.charge)...)
	case refused:
		return checkRefused(f)
	}
	return checkUnanswered(f.session, f.reply)
}

// checkRefused checks the refusal of an action, or of a transaction's begin.
func checkRefused(f fact) []violation {
	p := readProblem(f.reply)
	switch {
	case f.ending && p.Code == codeNotActive:
		return nil
	case p.Code == codeSuspended:
		return f.checkSuspended()
	case f.reply.status != http.StatusForbidden || p.Code != codeLimitReached:
		return []violation{found(ruleStatus, f.session, "refused with %s, when its end was sent: %t", f.reply, f.ending)}
	}
	if err := p.complete(); err != nil {
		return []violation{found(ruleUnreadable, f.session, "refused: %v", err)}
	}
	return append(checkUsage(f, p.usage, charge{}), checkRefusal(f, p)...)
}

// checkUnanswered finds answers with an unexpected status: neither success, refusal nor server error.
func checkUnanswered(subject string, r reply) []violation {
	if r.status != 0 && r.status < http.StatusInternalServerError {
		return []violation{found(ruleStatus, subject, "answered %s", r)}
	}
	return nil
}

// checkUsage checks the state of a session in an answer. It must include everything acknowledged before, and what the answer
// itself acknowledges. In a tree it includes what children that have closed used, and what is delegated to others does not remain.
func checkUsage(f fact, u usage, own charge) []violation {
	var out []violation
	add := func(r rule, format string, args ...any) { out = append(out, found(r, f.session, format, args...)) }
	least, most := f.least(), f.most()
	least.count, least.used = least.count+own.count, least.used+own.value
	actions, value := u.MaxActions-u.ActionCount, u.MaxValue-u.ValueUsed-u.ValueHeld
	if f.inTree {
		actions, value = min(actions, u.RemainingActions), min(value, u.RemainingValue)
	}
	if u.MaxActions > f.limits.actions || u.MaxValue > f.limits.value || !f.inTree && (limits{u.MaxActions, u.MaxValue}) != f.limits {
		add(ruleLimits, "says %d actions, %s USD; created with, or topped up to, %d, %s", u.MaxActions, u.MaxValue, f.limits.actions, f.limits.value)
	}
	out = append(out, u.checkLimits(f.session)...)
	if u.RemainingActions != actions || u.RemainingValue != value {
		add(ruleRemainder, "%d - %d leaves %d actions; %s - %s - %s leaves %s USD",
			u.MaxActions, u.ActionCount, u.RemainingActions, u.MaxValue, u.ValueUsed, u.ValueHeld, u.RemainingValue)
	}
	if u.ActionCount < least.count || u.ValueUsed < least.used || u.ValueHeld < least.held {
		add(ruleStale, "says %d actions, %s USD used and %s held; already acknowledged: %s", u.ActionCount, u.ValueUsed, u.ValueHeld, least)
	}
	if u.ActionCount > most.count || u.ValueUsed > most.used || u.ValueHeld > most.held {
		add(ruleInvented, "says %d actions, %s USD used and %s held; requested so far: %s", u.ActionCount, u.ValueUsed, u.ValueHeld, most)
	}
	return out
}

// checkRefusal checks that the request exceeds what remains of the limit that the refusal names.
func checkRefusal(f fact, p problem) []violation {
	needs, actions, value := f.needs(), p.RemainingActions, p.RemainingValue
	if !f.inTree {
		actions, value = p.MaxActions-p.ActionCount, p.MaxValue-p.ValueUsed-p.ValueHeld
	}
	switch {
	case p.Limit == limitActions && needs.count <= actions, p.Limit == limitValue && needs.value <= value:
		return []violation{found(ruleRefusal, f.session, "%s requested for %s, with %d actions and %s USD remaining", needs, p.Limit, actions, value)}
	case p.Limit != limitActions && p.Limit != limitValue:
		return []violation{found(ruleUnreadable, f.session, "refused for limit %q", p.Limit)}
	}
	return nil
}

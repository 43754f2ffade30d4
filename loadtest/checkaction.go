package main

import "net/http"

// actionFact is one action and its reply.
type actionFact struct {
	session   string
	limits    limits
	requested charge
	reply     reply
	window    // from the ledger
}

// checkAction checks the answer to an action.
func checkAction(f actionFact) []violation {
	switch f.reply.outcome() {
	case acknowledged:
		used, err := readUsage(f.reply)
		if err != nil || f.reply.status != http.StatusOK {
			return []violation{found(ruleUnreadable, f.session, "action answered %d: %v", f.reply.status, err)}
		}
		// The answer must include the action itself.
		return checkUsage(f, used, f.requested)
	case refused:
		return checkRefused(f)
	}
	return checkUnanswered(f.session, f.reply)
}

// checkRefused checks the refusal of an action, or of a transaction's begin.
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

// checkUnanswered finds answers with an unexpected status: neither success, refusal nor server error.
func checkUnanswered(subject string, r reply) []violation {
	if r.status != 0 && r.status < http.StatusInternalServerError {
		return []violation{found(ruleStatus, subject, "answered %s", r)}
	}
	return nil
}

// checkUsage checks the state of a session in an answer. It must include everything acknowledged before, and what the answer
// itself acknowledges.
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
		out = append(out, found(ruleInvented, f.session, "says %d actions, %s USD used and %s held; requested so far: %s",
			u.ActionCount, u.ValueUsed, u.ValueHeld, most))
	}
	return out
}

// checkRefusal checks that the request exceeds the limit that the refusal names.
func checkRefusal(f actionFact, p problem) []violation {
	switch {
	case p.Limit == limitActions && p.ActionCount+f.requested.count <= p.MaxActions:
		return []violation{found(ruleRefusal, f.session, "%d more on %d of %d actions", f.requested.count, p.ActionCount, p.MaxActions)}
	case p.Limit == limitValue && p.ValueUsed+p.ValueHeld+f.requested.value <= p.MaxValue:
		return []violation{found(ruleRefusal, f.session, "%s USD more on %s used and %s held of %s",
			f.requested.value, p.ValueUsed, p.ValueHeld, p.MaxValue)}
	case p.Limit != limitActions && p.Limit != limitValue:
		return []violation{found(ruleUnreadable, f.session, "action refused for limit %q", p.Limit)}
	}
	return nil
}

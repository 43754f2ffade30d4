package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"remit/money"
)

// Session is the state of a session as the service reports it.
type Session struct {
	Actions    int64          `json:"action_count"`
	MaxActions int64          `json:"max_actions"`
	Used       money.MicroUSD `json:"value_used_usd"`
	Held       money.MicroUSD `json:"value_held_usd"`
	MaxValue   money.MicroUSD `json:"max_value_usd"`
	Status     string         `json:"status"`

	Delegated *money.MicroUSD `json:"value_delegated_usd"` // nil for a session that never had children
}

// Stored is what the service has stored at the end of a scenario.
type Stored struct {
	Sessions     map[string]Session  // by id
	Missing      []string            // sessions whose creation was acknowledged but that do not exist
	Transactions map[string]string   // status by id
	Live         map[string][]string // active refresh tokens by family
	Usage        map[string]Used     // of the organization, by session
	ByType       map[string]Used     // the sum of each session's own usage
}

// Check compares the history with what is stored, and returns every violation. It changes neither.
func Check(calls []Call, stored Stored) []Violation {
	operations := operationsOf(calls)
	return slices.Concat(
		checkSessions(calls, operations, stored.Sessions),
		checkMissing(stored.Missing),
		checkKeys(operations),
		checkTransactions(operations, stored.Transactions),
		checkRevoked(calls),
		checkRefreshes(calls),
		checkLive(stored.Live),
		checkAnswers(calls),
		checkUsage(stored),
	)
}

// bounds are the least and the most that a stored number can be.
type bounds struct{ least, most int64 }

// add widens the bounds by n, which was added certainly or possibly.
func (b *bounds) add(n int64, certain bool) {
	if certain || n < 0 {
		b.least += n
	}
	if certain || n > 0 {
		b.most += n
	}
}

// account is what the calls on a session add up to.
type account struct{ actions, used, held bounds }

// add counts an operation, which has happened certainly or possibly.
func (a *account) add(o *operation) {
	certain := o.Outcome == OK
	a.actions.add(o.Effect.Actions, certain)
	a.used.add(int64(o.Effect.Used), certain)
	a.held.add(int64(o.Effect.Held), certain)
}

func (a *account) check(id string, s Session) []Violation {
	return slices.Concat(
		a.actions.check(id, "actions", s.Actions),
		a.used.check(id, "micro-USD used", int64(s.Used)),
		a.held.check(id, "micro-USD held", int64(s.Held)),
	)
}

// accountsOf returns the accounts of the sessions that are stored or were charged.
func accountsOf(operations []*operation, stored map[string]Session) map[string]*account {
	accounts := map[string]*account{}
	for id := range stored {
		accounts[id] = &account{}
	}
	for _, o := range joinSettlements(operations) {
		if o.Session == "" || o.Effect == (Effect{}) || o.Outcome == Refused {
			continue
		}
		if accounts[o.Session] == nil {
			accounts[o.Session] = &account{}
		}
		accounts[o.Session].add(o)
	}
	return accounts
}

// checkSessions compares what is stored of each session with its account. With its first violation come its calls.
func checkSessions(calls []Call, operations []*operation, stored map[string]Session) []Violation {
	accounts := accountsOf(operations, stored)
	var out []Violation
	for _, id := range slices.Sorted(maps.Keys(accounts)) {
		s, known := stored[id]
		if !known {
			out = append(out, violationOf(RuleMissing, "session "+id, "it was charged, but is not stored"))
			continue
		}
		wrong := accounts[id].check(id, s)
		if len(wrong) > 0 {
			wrong[0].Detail += "; " + journalOf(id, calls)
		}
		out = append(append(out, wrong...), checkLimits("session "+id, s)...)
	}
	return out
}

func checkMissing(sessions []string) []Violation {
	var out []Violation
	for _, id := range sessions {
		out = append(out, violationOf(RuleLost, "session "+id, "its creation was acknowledged, but it does not exist"))
	}
	return out
}

func (b bounds) check(session, what string, stored int64) []Violation {
	switch {
	case stored < b.least:
		return []Violation{violationOf(RuleLost, "session "+session, "%d %s are stored, at least %d were acknowledged", stored, what, b.least)}
	case stored > b.most:
		return []Violation{violationOf(RuleSurplus, "session "+session, "%d %s are stored, at most %d were acknowledged or of unknown outcome", stored, what, b.most)}
	}
	return nil
}

func checkLimits(subject string, s Session) []Violation {
	if s.Actions > s.MaxActions || s.Used+s.Held > s.MaxValue {
		return []Violation{violationOf(RuleLimit, subject, "%d of %d actions, %v USD used and %v held of %v",
			s.Actions, s.MaxActions, s.Used, s.Held, s.MaxValue)}
	}
	return nil
}

func checkKeys(operations []*operation) []Violation {
	var out []Violation
	for _, o := range operations {
		switch {
		case len(o.answers) > 1:
			out = append(out, violationOf(RuleKey, o.key, "it was answered %q and %q", o.answers[0], o.answers[1]))
		case len(o.answers) > 0 && o.refusal != "":
			out = append(out, violationOf(RuleKey, o.key, "it was acknowledged and refused (%s)", o.refusal))
		}
	}
	return out
}

// checkRevoked finds uses that began after the revocation or end was acknowledged.
func checkRevoked(calls []Call) []Violation {
	revoked := map[string]Call{}
	for _, c := range calls {
		first, known := revoked[c.Subject]
		if (c.Kind == Revoke || c.Kind == End) && c.Outcome == OK && (!known || c.Ended < first.Ended) {
			revoked[c.Subject] = c
		}
	}
	var out []Violation
	for _, c := range calls {
		if r, known := revoked[c.Subject]; known && c.Kind == Use && c.Outcome == OK && c.Began > r.Ended {
			out = append(out, violationOf(RuleRevoked, c.Subject, "%s was acknowledged at %v, but a use that began at %v was accepted: %s",
				r.Kind, r.Ended, c.Began, c.Answer))
		}
	}
	return out
}

func checkRefreshes(calls []Call) []Violation {
	successors := map[string]string{}
	var out []Violation
	for _, c := range calls {
		if c.Kind != Refresh || c.Outcome != OK {
			continue
		}
		if first, known := successors[c.Subject]; known && first != c.Answer {
			out = append(out, violationOf(RuleSuccessors, c.Subject, "%s and %s", first, c.Answer))
			continue
		}
		successors[c.Subject] = c.Answer
	}
	return out
}

func checkLive(live map[string][]string) []Violation {
	var out []Violation
	for _, family := range slices.Sorted(maps.Keys(live)) {
		if len(live[family]) > 1 {
			out = append(out, violationOf(RuleLive, family, "%q", live[family]))
		}
	}
	return out
}

// refusals are the codes that a fleet may expect, by kind of call. Any other refusal is a violation, because only the
// fleet itself revokes, ends or uses up anything.
var refusals = map[Kind][]string{
	Charge:   {"session_limit_reached"},
	Begin:    {"session_limit_reached"},
	Grant:    {"session_limit_reached"},
	Commit:   {"transaction_not_pending"},
	Rollback: {"transaction_not_pending", "transaction_not_reversible"},
	Read:     {"not_found"}, // other checks judge what is missing
	Use: {"invalid_token", "invalid_refresh_token", "invalid_credentials", "session_not_active", "agent_revoked",
		"not_found"},
}

// checkAnswers judges each answer on its own.
func checkAnswers(calls []Call) []Violation {
	var out []Violation
	for _, c := range calls {
		subject := fmt.Sprintf("%s %s", c.Kind, c.Subject)
		switch {
		case c.Outcome == OK && c.Kind == Charge:
			var s Session
			if err := json.Unmarshal([]byte(c.Answer), &s); err != nil {
				out = append(out, violationOf(RuleAnswer, subject, "%v: %s", err, c.Answer))
			}
			out = append(out, checkLimits("an answer for session "+c.Session, s)...)
		case c.Outcome == OK, c.Status == 0, c.Status == 503, slices.Contains(refusals[c.Kind], c.Code):
		case c.Status == 401, c.Status == 404: // a scenario that may lose writes tolerates these
			out = append(out, violationOf(RuleDenied, subject, "%d %s %s", c.Status, c.Code, c.Answer))
		default:
			out = append(out, violationOf(RuleAnswer, subject, "%d %s %s", c.Status, c.Code, c.Answer))
		}
	}
	return out
}

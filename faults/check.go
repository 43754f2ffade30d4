package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"remit/money"
)

// Rule names what was broken.
type Rule string

// What Check and Scenario find.
const (
	RuleLost       Rule = "acknowledged but not stored"
	RuleSurplus    Rule = "stored but neither acknowledged nor in doubt"
	RuleLimit      Rule = "limit exceeded"
	RuleKey        Rule = "an idempotency key has two outcomes"
	RuleRevoked    Rule = "revoked or ended, and still of use"
	RuleSuccessors Rule = "two successors of one refresh token"
	RuleLive       Rule = "two live refresh tokens in a family"
	RuleSettled    Rule = "a transaction was settled twice"
	RuleStatus     Rule = "a transaction is not what was acknowledged"
	RuleAnswer     Rule = "unexpected answer"
	RuleDenied     Rule = "not let in any more, or not found any more"
	RuleMissing    Rule = "charged and not there"
	RuleUnread     Rule = "could not be read: nothing is known"
	RuleRecovery   Rule = "not back in time"
	RuleGoroutines Rule = "goroutines are left"
	RuleConns      Rule = "connections are left"
	RuleFiles      Rule = "file descriptors are left"
	RuleExit       Rule = "an instance did not end in order"
)

// Violation is one broken rule.
type Violation struct {
	Rule    Rule
	Subject string
	Detail  string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Rule, v.Subject, v.Detail) }

func found(r Rule, subject, format string, args ...any) Violation {
	return Violation{r, subject, fmt.Sprintf(format, args...)}
}

// Session is what the service says about a session.
type Session struct {
	Actions    int64          `json:"action_count"`
	MaxActions int64          `json:"max_actions"`
	Used       money.MicroUSD `json:"value_used_usd"`
	Held       money.MicroUSD `json:"value_held_usd"`
	MaxValue   money.MicroUSD `json:"max_value_usd"`
	Status     string         `json:"status"`
}

// Stored is what the service keeps when all is over.
type Stored struct {
	Sessions     map[string]Session  // by id
	Missing      []string            // sessions whose creation was acknowledged and that are not there
	Transactions map[string]string   // status by id
	Live         map[string][]string // by family: those of its refresh tokens that introspection calls active
}

// Check returns every rule that the history and what is stored break together. Both are only read.
func Check(calls []Call, stored Stored) []Violation {
	operations := operationsOf(calls)
	return slices.Concat(
		checkSessions(operations, stored.Sessions),
		checkMissing(stored.Missing),
		checkKeys(operations),
		checkTransactions(operations, stored.Transactions),
		checkRevoked(calls),
		checkRefreshes(calls),
		checkLive(stored.Live),
		checkAnswers(calls),
	)
}

// operation is what a caller wanted once: all calls with one idempotency key, or one call without.
type operation struct {
	Call             // the first, with the outcome of all together
	key     string   // what it was asked with; empty for none
	answers []string // different ones that acknowledge
	refusal string   // code of one that refused for good
}

// operationsOf joins the calls of each idempotency key. If one of them is answered for good, so is the operation.
func operationsOf(calls []Call) []*operation {
	var operations []*operation
	byKey := map[string]*operation{}
	for _, c := range calls {
		key := string(c.Kind) + " " + c.Subject + " " + c.Key
		o := byKey[key]
		if o == nil || c.Key == "" {
			o = &operation{Call: c, key: key}
			byKey[key] = o
			operations = append(operations, o)
		}
		o.join(c)
	}
	return operations
}

func (o *operation) join(c Call) {
	switch {
	case c.Outcome == OK:
		if !slices.Contains(o.answers, c.Answer) {
			o.answers = append(o.answers, c.Answer)
		}
	case c.decided():
		o.refusal = c.Code
	}
	switch {
	case len(o.answers) > 0:
		o.Outcome = OK
	case o.refusal != "":
		o.Outcome = Refused
	case c.Outcome == Unknown:
		o.Outcome = Unknown
	}
}

// bounds are the least and the most that a number can be.
type bounds struct{ least, most int64 }

// add takes in what certainly, or what perhaps, was added.
func (b *bounds) add(n int64, certain bool) {
	if certain || n < 0 {
		b.least += n
	}
	if certain || n > 0 {
		b.most += n
	}
}

func checkSessions(operations []*operation, stored map[string]Session) []Violation {
	type account struct{ actions, used, held bounds }
	accounts := map[string]*account{}
	for id := range stored {
		accounts[id] = &account{}
	}
	for _, o := range operations {
		if o.Session == "" || o.Effect == (Effect{}) || o.Outcome == Refused {
			continue
		}
		a := accounts[o.Session]
		if a == nil {
			a = &account{}
			accounts[o.Session] = a
		}
		certain := o.Outcome == OK
		a.actions.add(o.Effect.Actions, certain)
		a.used.add(int64(o.Effect.Used), certain)
		a.held.add(int64(o.Effect.Held), certain)
	}
	var out []Violation
	for _, id := range slices.Sorted(maps.Keys(accounts)) {
		s, known := stored[id]
		if !known {
			out = append(out, found(RuleMissing, "session "+id, "it was charged, and is not among what is stored"))
			continue
		}
		a := accounts[id]
		out = append(out, a.actions.check(id, "actions", s.Actions)...)
		out = append(out, a.used.check(id, "micro-USD used", int64(s.Used))...)
		out = append(out, a.held.check(id, "micro-USD held", int64(s.Held))...)
		out = append(out, checkLimits("session "+id, s)...)
	}
	return out
}

func checkMissing(sessions []string) []Violation {
	var out []Violation
	for _, id := range sessions {
		out = append(out, found(RuleLost, "session "+id, "its creation was acknowledged, and it is not there"))
	}
	return out
}

func (b bounds) check(session, what string, stored int64) []Violation {
	switch {
	case stored < b.least:
		return []Violation{found(RuleLost, "session "+session, "%d %s are stored, at least %d were acknowledged", stored, what, b.least)}
	case stored > b.most:
		return []Violation{found(RuleSurplus, "session "+session, "%d %s are stored, at most %d were acknowledged or in doubt", stored, what, b.most)}
	}
	return nil
}

func checkLimits(subject string, s Session) []Violation {
	if s.Actions > s.MaxActions || s.Used+s.Held > s.MaxValue {
		return []Violation{found(RuleLimit, subject, "%d of %d actions, %v USD used and %v held of %v",
			s.Actions, s.MaxActions, s.Used, s.Held, s.MaxValue)}
	}
	return nil
}

func checkKeys(operations []*operation) []Violation {
	var out []Violation
	for _, o := range operations {
		switch {
		case len(o.answers) > 1:
			out = append(out, found(RuleKey, o.key, "it was answered %q and %q", o.answers[0], o.answers[1]))
		case len(o.answers) > 0 && o.refusal != "":
			out = append(out, found(RuleKey, o.key, "it was acknowledged and refused (%s)", o.refusal))
		}
	}
	return out
}

// settlement is what callers were told about a transaction.
type settlement struct{ begun, committed, rolledBack, doubt bool }

// checkTransactions expects that nobody rolls back what was committed: such a transaction would be both.
func checkTransactions(operations []*operation, stored map[string]string) []Violation {
	settlements := map[string]*settlement{}
	of := func(id string) *settlement {
		if settlements[id] == nil {
			settlements[id] = &settlement{}
		}
		return settlements[id]
	}
	for _, o := range operations {
		switch {
		case o.Kind == Begin && o.Outcome == OK:
			of(idIn(o.answers)).begun = true
		case o.Kind != Commit && o.Kind != Rollback || o.Outcome == Refused:
		case o.Outcome == Unknown:
			of(o.Subject).doubt = true
		case o.Kind == Commit:
			of(o.Subject).committed = true
		default:
			of(o.Subject).rolledBack = true
		}
	}
	var out []Violation
	for _, id := range slices.Sorted(maps.Keys(settlements)) {
		s, status := settlements[id], stored[id]
		switch {
		case s.committed && s.rolledBack:
			out = append(out, found(RuleSettled, "transaction "+id, "both its commit and its rollback were acknowledged"))
		case s.committed && status != "committed",
			s.rolledBack && status != "rolled_back",
			!s.committed && !s.rolledBack && !s.doubt && status != "pending":
			out = append(out, found(RuleStatus, "transaction "+id, "it is stored as %q; %+v", status, *s))
		}
	}
	return out
}

// idIn returns the id in an answer that creates something.
func idIn(answers []string) string {
	var created struct{ ID string }
	if len(answers) > 0 {
		_ = json.Unmarshal([]byte(answers[0]), &created)
	}
	return created.ID
}

// checkRevoked finds uses that began after the revocation, or the end, was acknowledged.
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
			out = append(out, found(RuleRevoked, c.Subject, "%s was acknowledged at %v, and at %v it was accepted: %s",
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
			out = append(out, found(RuleSuccessors, c.Subject, "%s and %s", first, c.Answer))
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
			out = append(out, found(RuleLive, family, "%q", live[family]))
		}
	}
	return out
}

// refusals are the codes by which a fleet may be refused, by what it asks for. Any other answer is a fault: nobody but
// the fleet itself revokes, ends, or uses up anything.
var refusals = map[Kind][]string{
	Charge:   {"session_limit_reached"},
	Begin:    {"session_limit_reached"},
	Commit:   {"transaction_not_pending"},
	Rollback: {"transaction_not_pending", "transaction_not_reversible"},
	Read:     {"not_found"}, // what that means is judged where it is missing
	Use: {"invalid_token", "invalid_refresh_token", "invalid_credentials", "session_not_active", "agent_revoked",
		"not_found"},
}

// checkAnswers judges each answer by itself.
func checkAnswers(calls []Call) []Violation {
	var out []Violation
	for _, c := range calls {
		subject := fmt.Sprintf("%s %s", c.Kind, c.Subject)
		switch {
		case c.Outcome == OK && c.Kind == Charge:
			var s Session
			if err := json.Unmarshal([]byte(c.Answer), &s); err != nil {
				out = append(out, found(RuleAnswer, subject, "%v: %s", err, c.Answer))
			}
			out = append(out, checkLimits("an answer about session "+c.Session, s)...)
		case c.Outcome == OK, c.Status == 0, c.Status == 503, slices.Contains(refusals[c.Kind], c.Code):
		case c.Status == 401, c.Status == 404: // what a lost write explains, where one may be lost
			out = append(out, found(RuleDenied, subject, "%d %s %s", c.Status, c.Code, c.Answer))
		default:
			out = append(out, found(RuleAnswer, subject, "%d %s %s", c.Status, c.Code, c.Answer))
		}
	}
	return out
}

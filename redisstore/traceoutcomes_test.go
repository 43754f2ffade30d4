package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"remit/money"
)

// The text of an outcome says what a rule is about. All the rest, such as times, is compared with the model.

// creations are the kinds of what steps create, which a later step can be about.
var creations = map[string]string{
	"agent": "agent", "session": "session", "child": "session", "ask": "request", "begin": "transaction", "lease": "lease", "settle": "lease",
}

func (p *tracePlayer) textOf(o outcome) string {
	text := p.textOfValue(o.value)
	if o.err != nil {
		text = p.textOfError(o.err)
	}
	return given("again: ", o.replayed) + text
}

func (p *tracePlayer) textOfError(err error) string {
	var limit *LimitError
	var parent *ParentError
	var agent *AgentLimitError
	var budget *BudgetError
	var below *BelowUsageError
	switch {
	case errors.As(err, &parent):
		return "limit " + parent.Limit + " of " + p.nameOf(parent.Parent)
	case errors.As(err, &limit):
		return "limit " + limit.Limit + p.at(limit.Usage)
	case errors.As(err, &agent):
		return "limit " + agent.Limit + p.until(agent.ResetsAt) + given(" for "+agent.RetryAfter.String(), p.clock != nil && agent.RetryAfter > 0)
	case errors.As(err, &budget):
		return fmt.Sprintf("the budget has $%s left", budget.Remaining) + p.until(budget.Resets)
	case errors.As(err, &below):
		return err.Error() + p.at(below.Usage)
	}
	return err.Error()
}

// at returns how much is used when something is refused, which a model knows.
func (p *tracePlayer) at(u Usage) string { return given(" at "+textOfUsage(u), p.m == nil) }

// begun returns when a period began, by the clock of the trace, if that is not before it.
func (p *tracePlayer) begun(t time.Time) string {
	return given(" from "+t.Sub(p.midnight).String(), p.clock != nil && !t.Before(p.midnight))
}

// until returns when a period ends.
func (p *tracePlayer) until(t time.Time) string {
	return given(" until "+t.Sub(p.midnight).String(), p.clock != nil && !t.IsZero())
}

func (p *tracePlayer) textOfValue(value any) string {
	switch v := value.(type) {
	case Usage:
		return textOfUsage(v)
	case Session:
		return textOfSession(v)
	case Transaction:
		return textOfTransaction(v)
	case Lease:
		return textOfLease(v)
	case Agent:
		return textOfAgent(v)
	case SessionRequest:
		return textOfRequest(v)
	case OrganizationBudget:
		return fmt.Sprintf("$%s of $%s used, $%s reserved", v.Used, v.MaxValue, v.Reserved) + p.begun(v.Started) + p.until(v.Resets)
	case string:
		return v
	case []ChargeOutcome:
		var texts []string
		for _, c := range v {
			texts = append(texts, p.textOf(resultOf(c.Usage, c.Err)))
		}
		return strings.Join(texts, ", ")
	case transactionPage:
		var names []string
		for _, t := range v.transactions {
			names = append(names, p.nameOf(t.ID))
		}
		return strings.Join(names, " ") + given(" and more", v.more)
	case time.Time:
		return "ended"
	case nil:
		return "ok"
	}
	panic(fmt.Sprintf("no text for %T", value))
}

// given returns the text of what an outcome has, "" if it has not.
func given(text string, has bool) string {
	if !has {
		return ""
	}
	return text
}

func amount(name string, value money.MicroUSD) string {
	return given(" "+name+" $"+value.String(), value != 0)
}

// textOfUsage says how much of the actions and of the value is used, what is held and delegated, and which limit is observed.
func textOfUsage(u Usage) string {
	text := fmt.Sprintf("%d/%d $%s/$%s", u.ActionCount, u.MaxActions, u.ValueUsed, u.MaxValue) + amount("held", u.ValueHeld)
	if d := u.delegated(); d != (Delegated{}) {
		text += fmt.Sprintf(" delegated %d $%s", d.Actions, d.Value)
	}
	return text + wouldRefuse(u.WouldRefuse)
}

func wouldRefuse(limit string) string { return given(" beyond "+limit, limit != "") }

func textOfSession(s Session) string {
	text := string(s.Status) + " " + textOfUsage(s.Usage) + amount("overage", s.ValueOverage)
	if s.MaxCommitted != nil {
		text += fmt.Sprintf(" committed $%s/$%s", s.ValueCommitted, *s.MaxCommitted)
	}
	if s.MaxPerAction != nil {
		text += fmt.Sprintf(" $%s an action", *s.MaxPerAction)
	}
	if s.ObservedRefusals != nil {
		text += given(" observes", s.Observes) + given(" enforces", !s.Observes) + fmt.Sprintf(" after %d", *s.ObservedRefusals)
	}
	return text + given(" suspended", !s.Suspended.IsZero())
}

// textOfAgent says how much of the agent's limits is used.
func textOfAgent(a Agent) string {
	var limits []string
	if l := a.Limits.ValuePerDay; l != nil {
		limits = append(limits, "$"+orElse(a.Usage.ValueToday, 0).String()+" of $"+l.String()+" a day")
	}
	if l := a.Limits.ActionsPerMinute; l != nil {
		limits = append(limits, fmt.Sprint(*l, " a minute"))
	}
	if l := a.Limits.OpenSessions; l != nil {
		limits = append(limits, fmt.Sprint(orElse(a.Usage.OpenSessions, 0), " of ", *l, " open"))
	}
	return strings.Join(limits, ", ") + given("no limits", limits == nil)
}

// textOfRequest says what was asked for, or is granted, and what no request should be.
func textOfRequest(r SessionRequest) string {
	actions, value := r.AddActions, r.AddValue
	if r.Status == Approved {
		actions, value = r.GrantedActions, r.GrantedValue
	}
	return fmt.Sprintf("%s %d $%s", r.Status, actions, value) + given(" ("+r.Comment+")", r.Comment != "") + given(" as before", r.Repeated) +
		given(" for no reason", r.Reason != askedFor) + given(" undecided", (r.Status == Approved || r.Status == Denied) == r.Decided.IsZero())
}

func textOfTransaction(t Transaction) string {
	text := string(t.Status)
	switch t.Status {
	case Pending, Expired:
		text += " $" + t.Hold.String()
	case Committed:
		text += " $" + t.Value.String()
	}
	return text + amount("overage", t.Overage) + given(" late", t.Late) + given(" by expiry", t.SettledByExpiry) + given(" of the gateway", t.HeldByGateway) +
		given(" as before", t.Repeated) + wouldRefuse(t.WouldRefuse)
}

func textOfLease(l Lease) string {
	s := l.Settlement
	if s == nil {
		return fmt.Sprintf("%s %d $%s", l.Status, l.MaxActions, l.MaxValue) + wouldRefuse(l.WouldRefuse)
	}
	text := fmt.Sprintf("%s %d $%s", l.Status, s.ActionCount, s.ValueUsed)
	if s.OverageActions > 0 || s.Overage > 0 {
		text += fmt.Sprintf(" overage %d $%s", s.OverageActions, s.Overage)
	}
	text += amount("charged", s.ChargedOverage) + given(" late", s.Late)
	if s.Renewed != nil {
		text += ", renewed " + textOfLease(*s.Renewed)
	}
	return text + given(", refused "+strings.TrimSpace(s.Refusal+" "+s.Limit), s.Refusal != "") + given(", as before", s.Repeated)
}

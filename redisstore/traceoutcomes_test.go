package redisstore

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"remit/money"
)

// The text of an outcome says what a rule is about. All the rest, such as times, is compared with the model.

// creations are the operations that create something a later step can be about.
var creations = map[reflect.Type]string{
	reflect.TypeFor[NewSession](): "session", reflect.TypeFor[NewTransaction](): "transaction", reflect.TypeFor[NewLease](): "lease",
	reflect.TypeFor[NewSettlement](): "lease",
}

func (p *tracePlayer) textOf(o outcome) string {
	text := p.textOfValue(o.value)
	if limit := new(LimitError); errors.As(o.err, &limit) {
		text = "limit " + limit.Limit
	} else if o.err != nil {
		text = o.err.Error()
	}
	if o.replayed {
		return "again: " + text
	}
	return text
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

// textOfUsage says how much of the actions and of the value is used, and what is held.
func textOfUsage(u Usage) string {
	return fmt.Sprintf("%d/%d $%s/$%s", u.ActionCount, u.MaxActions, u.ValueUsed, u.MaxValue) + amount("held", u.ValueHeld)
}

func textOfSession(s Session) string {
	text := string(s.Status) + " " + textOfUsage(s.Usage) + amount("overage", s.ValueOverage)
	if s.MaxCommitted != nil {
		text += fmt.Sprintf(" committed $%s/$%s", s.ValueCommitted, *s.MaxCommitted)
	}
	return text + given(" suspended", !s.Suspended.IsZero())
}

func textOfTransaction(t Transaction) string {
	text := string(t.Status)
	switch t.Status {
	case Pending, Expired:
		text += " $" + t.Hold.String()
	case Committed:
		text += " $" + t.Value.String()
	}
	return text + amount("overage", t.Overage) + given(" late", t.Late) + given(" by expiry", t.SettledByExpiry)
}

func textOfLease(l Lease) string {
	s := l.Settlement
	if s == nil {
		return fmt.Sprintf("%s %d $%s", l.Status, l.MaxActions, l.MaxValue)
	}
	text := fmt.Sprintf("%s %d $%s", l.Status, s.ActionCount, s.ValueUsed)
	if s.OverageActions > 0 || s.Overage > 0 {
		text += fmt.Sprintf(" overage %d $%s", s.OverageActions, s.Overage)
	}
	text += given(" late", s.Late)
	if s.Renewed != nil {
		text += ", renewed " + textOfLease(*s.Renewed)
	}
	return text + given(", refused "+strings.TrimSpace(s.Refusal+" "+s.Limit), s.Refusal != "")
}

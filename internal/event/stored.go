package event

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// setters set the fields of an event by the names that scripts store them under.
var setters = map[string]func(*Event, *value){
	"type": func(e *Event, v *value) { e.Type = v.text },
	"at":   func(e *Event, v *value) { e.Time = v.time() },
	"actor": func(e *Event, v *value) {
		switch v.text {
		case "key":
			e.Actor.Type = ByKey
		case "time":
			e.Actor.Type = ByTime
		case "gateway":
			e.Actor.Type = ByGateway
		case "session_key":
			e.Actor.Type = BySessionKey
		}
	},
	"request": func(e *Event, v *value) {
		id, actor, _ := strings.Cut(v.text, " ") // the agent that acts with a delegated token, or the session key
		e.Request = id
		e.Actor.ID, _ = uuid.Parse(actor)
	},
	"session":         func(e *Event, v *value) { e.Session = v.id() },
	"transaction":     func(e *Event, v *value) { e.Transaction = v.id() },
	"family":          func(e *Event, v *value) { e.Family = v.id() },
	"lease":           func(e *Event, v *value) { e.Lease = v.id() },
	"session_request": func(e *Event, v *value) { e.Asked = v.id() },
	"child":           func(e *Event, v *value) { e.Child = v.id() },
	"issuer":          func(e *Event, v *value) { e.Issuer = v.id() },
	"session_key":     func(e *Event, v *value) { e.SessionKey = v.id() },

	"limit":           func(e *Event, v *value) { e.Limit = v.text },
	"max_actions":     func(e *Event, v *value) { e.MaxActions = v.number() },
	"add_actions":     func(e *Event, v *value) { e.AddActions = v.number() },
	"max_lease":       func(e *Event, v *value) { e.MaxLease = v.number() },
	"actions":         func(e *Event, v *value) { e.Actions = v.number() },
	"overage_actions": func(e *Event, v *value) { e.OverageActions = v.number() },
	"max_value":       func(e *Event, v *value) { e.MaxValue = v.amount() },
	"add_value":       func(e *Event, v *value) { e.AddValue = v.amount() },
	"max_committed":   func(e *Event, v *value) { e.MaxCommitted = v.amount() },
	"held":            func(e *Event, v *value) { e.Held = v.amount() },
	"leased":          func(e *Event, v *value) { e.Leased = v.amount() },
	"delegated":       func(e *Event, v *value) { e.Delegated = v.amount() },
	"released":        func(e *Event, v *value) { e.Released = v.amount() },
	"charged":         func(e *Event, v *value) { e.Charged = v.amount() },
	"overage":         func(e *Event, v *value) { e.Overage = v.amount() },
	"late":            func(e *Event, v *value) { e.Late = v.text != "" },
	"settled_by":      func(e *Event, v *value) { e.SettledBy = v.text },
	"expires":         func(e *Event, v *value) { e.Expires = v.time() },
	"for":             func(e *Event, v *value) { e.Lasts = time.Duration(v.parse(v.text)) * time.Second },
	"started":         func(e *Event, v *value) { e.PeriodStarted = v.time() },
	"previous_until":  func(e *Event, v *value) { e.PreviousExpires = v.time() },
	"spent":           func(e *Event, v *value) { e.Spent = v.time() },
	"reason":          func(e *Event, v *value) { e.Reason = v.text },
	"changed":         func(e *Event, v *value) { e.Changed = strings.Fields(v.text) },
	"enforcement":     func(e *Event, v *value) { e.Enforcement = v.text },
	"max_per_action":  func(e *Event, v *value) { e.MaxPerAction = v.amount() },
	"limits":          func(e *Event, v *value) { e.Limits = v.limits() },
	"budget":          func(e *Event, v *value) { e.Budget = v.text },
	"threshold":       func(e *Event, v *value) { e.Threshold = *v.number() },
	"thresholds":      func(e *Event, v *value) { e.Thresholds = v.percents() },
}

// Read reads the names and values of a trail's entry. It skips names that it does not know: a later version wrote them.
func Read(id string, fields iter.Seq2[string, string]) (Event, error) {
	e, v := Event{ID: id}, value{}
	for name, text := range fields {
		if set, known := setters[name]; known {
			v.text = text
			set(&e, &v)
		}
	}
	return e, v.err
}

// value is the text of a stored field. err is the first value that was not what its reader expected.
type value struct {
	text string
	err  error
}

func (v *value) fail(what string) {
	if v.err == nil {
		v.err = fmt.Errorf("%q is no %s", v.text, what)
	}
}

func (v *value) number() *int64          { return new(v.parse(v.text)) }
func (v *value) amount() *money.MicroUSD { return (*money.MicroUSD)(v.number()) }

// parse reads a count, an amount or a time: none of them is below 0.
func (v *value) parse(text string) int64 {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 {
		v.fail("number")
	}
	return number
}

// time reads ms since 1970.
func (v *value) time() Timestamp {
	at := time.UnixMilli(v.parse(v.text))
	if at.UTC().Year() > 9999 { // RFC 3339 ends there
		v.fail("time")
	}
	return Timestamp(at)
}

// id reads an id from its 16 bytes or its text, uuid.Nil from "".
func (v *value) id() (id uuid.UUID) {
	if len(v.text) == len(id) {
		copy(id[:], v.text)
		return id
	}
	id, err := uuid.Parse(v.text)
	if err != nil && v.text != "" {
		v.fail("id")
	}
	return id
}

// limits reads limits as identity/include/set_agent_limits.lua returns them.
func (v *value) limits() *AgentLimits {
	parts := strings.Split(v.text, " ")
	if len(parts) != 3 {
		v.fail("three limits")
		return nil
	}
	limit := func(text string) *int64 {
		if text == "-" {
			return nil
		}
		return new(v.parse(text))
	}
	return &AgentLimits{(*money.MicroUSD)(limit(parts[0])), limit(parts[1]), limit(parts[2])}
}

// percents reads percents with spaces between.
func (v *value) percents() []int {
	percents := []int{}
	for percent := range strings.FieldsSeq(v.text) {
		percents = append(percents, int(v.parse(percent)))
	}
	return percents
}

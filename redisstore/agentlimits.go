package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/internal/event"
	"remit/internal/redisclient"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// The limits of an agent, by their names in refusals and events.
const (
	LimitValuePerDay      = "max_value_usd_per_day"
	LimitActionsPerMinute = "max_actions_per_minute"
	LimitOpenSessions     = "max_open_sessions"
)

// The highest max_actions_per_minute and max_open_sessions.
const (
	MostActionsPerMinute = 1_000_000
	MostOpenSessions     = 1_000_000
)

// AgentLimits bound what an agent does in all its sessions together. A nil limit is none.
type AgentLimits = event.AgentLimits

// AgentUsage is what is used of an agent's limits. A field is nil or zero when the agent does not have its limit.
type AgentUsage struct {
	ValueToday   *money.MicroUSD // charged, held and leased today
	ResetsAt     time.Time       // the end of the day
	OpenSessions *int64          // of those created since the limit was set
}

// LimitChange changes one limit. The zero value leaves it as it is.
type LimitChange struct {
	Given bool
	Value *int64 // nil for no limit; micro-USD of a value
}

func (c LimitChange) text() string {
	switch {
	case !c.Given:
		return "="
	case c.Value == nil:
		return "-"
	default:
		return strconv.FormatInt(*c.Value, 10)
	}
}

// NewAgentLimits changes an agent's limits.
type NewAgentLimits struct{ ValuePerDay, ActionsPerMinute, OpenSessions LimitChange }

// givenLimits returns the limits as changes of an agent that has none.
func givenLimits(l AgentLimits) NewAgentLimits {
	change := func(limit *int64) LimitChange { return LimitChange{limit != nil, limit} }
	return NewAgentLimits{change((*int64)(l.ValuePerDay)), change(l.ActionsPerMinute), change(l.OpenSessions)}
}

// usedOf returns what is used of the limits at this time, when so many sessions are open.
func usedOf(l AgentLimits, counted countedDay, now time.Time, open int64) AgentUsage {
	var u AgentUsage
	if l.ValuePerDay != nil {
		used, ends := counted.on(now)
		u.ValueToday, u.ResetsAt = &used, ends
	}
	if l.OpenSessions != nil {
		u.OpenSessions = &open
	}
	return u
}

// text returns the changes as identity/include/set_agent_limits.lua takes them, "" for none.
func (n NewAgentLimits) text() string {
	if n == (NewAgentLimits{}) {
		return ""
	}
	return n.ValuePerDay.text() + " " + n.ActionsPerMinute.text() + " " + n.OpenSessions.text()
}

// refuseAgentLimit reads a refusal by a limit of the agent.
func refuseAgentLimit(r *reply) error {
	e := &AgentLimitError{Limit: r.Text(0)}
	switch at := r.Text(1); {
	case at == "":
	case e.Limit == LimitValuePerDay:
		e.ResetsAt = time.UnixMilli(r.Parse(at)).UTC()
	default:
		e.RetryAfter = time.Duration(r.Parse(at)) * time.Millisecond
	}
	if r.Has(2) && r.Text(2) != "" {
		e.Left = new(kernel.MoneyAt(r, 2))
	}
	return kernel.OrBroken(r, e)
}

var (
	findDueSessions = kernel.NewScript("budgets/find_due_sessions", bestEffort)
	getAgentUsage   = kernel.NewScript("records/get_agent_usage", reads)
)

// releaseAgentHolds releases the holds that are due and count in the agent's day, of all its sessions.
func (s *Store) releaseAgentHolds(ctx context.Context, act kernel.Actor, _ uuid.UUID) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	keys := []string{s.core.AgentKey(act), s.keys.AgentHolds(act.Agent)}
	for {
		r, err := s.client.Run(ctx, act.Flow, findDueSessions, keys)
		if err != nil {
			return kernel.NothingVisible(err)
		}
		due := r.List(0)
		if r.Err != nil || len(due.Values) == 0 {
			return r.Err
		}
		for i := range due.Values {
			session := kernel.IDOrNilAt(due, i)
			if due.Err != nil {
				return due.Err
			}
			if err := s.releaseHolds(ctx, act, session); err != nil {
				return err
			}
		}
	}
}

// withUsage returns an agent of its organization with what is used of its limits.
func (s *Store) withUsage(ctx context.Context, a Agent) (Agent, error) {
	if a.Limits.ValuePerDay == nil && a.Limits.OpenSessions == nil {
		return a, nil
	}
	var err error
	a.Limits, a.Usage, err = s.agentUsage(ctx, flow{Owner: a.Organization}, a.Organization, a.ID)
	return a, err
}

// agentUsage reads the limits of an agent, and what is used of them.
func (s *Store) agentUsage(ctx context.Context, f flow, organization, agent uuid.UUID) (AgentLimits, AgentUsage, error) {
	act := kernel.Actor{Organization: organization, Agent: agent, Flow: f}
	keys := []string{s.keys.Agent(agent), s.keys.AgentOpen(agent)}
	r, err := s.client.Run(ctx, f, getAgentUsage, keys, organization, "")
	if err == kernel.ErrAgentHoldsDue {
		if err = s.releaseAgentHolds(ctx, act, uuid.Nil); err != nil && !redisclient.RefusedWrite(err) {
			return AgentLimits{}, AgentUsage{}, err
		}
		r, err = s.client.Run(ctx, f, getAgentUsage, keys, organization, "1")
	}
	if err != nil {
		return AgentLimits{}, AgentUsage{}, err
	}
	limits, counted := readAgentLimits(r, r.Optional(1), r.Optional(2))
	return limits, usedOf(limits, counted, r.Time(0), r.Number(3)), r.Err
}

// countedDay is the last day on which an agent's value counted, in days since 1970, and how much.
type countedDay struct {
	day  int64
	used money.MicroUSD
}

const dayLength = 24 * time.Hour

// on returns how much counts in the day of now, and when that ends.
func (c countedDay) on(now time.Time) (used money.MicroUSD, ends time.Time) {
	today := now.UnixMilli() / dayLength.Milliseconds()
	if today <= c.day {
		today, used = c.day, c.used
	}
	return used, time.UnixMilli((today + 1) * dayLength.Milliseconds()).UTC()
}

// readAgentLimits reads an agent's fields restricted and max_open_sessions, "" for none; see budgets/include/agent_limits.lua.
func readAgentLimits(r *reply, restricted, open string) (AgentLimits, countedDay) {
	var l AgentLimits
	var c countedDay
	if open != "" {
		l.OpenSessions = new(r.Parse(open))
	}
	_, rest, counted := strings.Cut(restricted, " ")
	if !counted {
		return l, c
	}
	parts := strings.Split(rest, " ")
	if len(parts) != 5 {
		r.Err = fmt.Errorf("%w: %q are no limits", errReply, restricted)
		return l, c
	}
	if parts[0] != "" {
		l.ValuePerDay = new(money.MicroUSD(r.Parse(parts[0])))
		c = countedDay{r.Parse(parts[2]), *l.ValuePerDay}
		if beyond, is := strings.CutPrefix(parts[3], "-"); is {
			c.used += parseMoney(r, beyond)
		} else {
			c.used -= parseMoney(r, parts[3])
		}
	}
	if parts[1] != "" {
		l.ActionsPerMinute = new(r.Parse(parts[1]))
	}
	return l, c
}

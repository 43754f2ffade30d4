package server

import (
	"remit/money"
	"remit/redisstore"
)

// agentLimitsRequest are the limits in a request. One that is left out stays as it is; null is none.
type agentLimitsRequest struct {
	ValuePerDay      nullable[money.MicroUSD] `json:"max_value_usd_per_day"`
	ActionsPerMinute nullable[int64]          `json:"max_actions_per_minute"`
	OpenSessions     nullable[int64]          `json:"max_open_sessions"`
}

// changes checks the limits; the zero value changes nothing.
func (r *agentLimitsRequest) changes(v *validation) redisstore.NewAgentLimits {
	if r.ActionsPerMinute.value != nil {
		v.within("limits.max_actions_per_minute", *r.ActionsPerMinute.value, 1, redisstore.MostActionsPerMinute)
	}
	if r.OpenSessions.value != nil {
		v.within("limits.max_open_sessions", *r.OpenSessions.value, 0, redisstore.MostOpenSessions)
	}
	return redisstore.NewAgentLimits{
		ValuePerDay:      redisstore.LimitChange{Given: r.ValuePerDay.given, Value: (*int64)(r.ValuePerDay.value)},
		ActionsPerMinute: redisstore.LimitChange{Given: r.ActionsPerMinute.given, Value: r.ActionsPerMinute.value},
		OpenSessions:     redisstore.LimitChange{Given: r.OpenSessions.given, Value: r.OpenSessions.value},
	}
}

// limits checks the limits of a new agent.
func (r *agentLimitsRequest) limits(v *validation) redisstore.AgentLimits {
	r.changes(v)
	return redisstore.AgentLimits{
		ValuePerDay: r.ValuePerDay.value, ActionsPerMinute: r.ActionsPerMinute.value, OpenSessions: r.OpenSessions.value,
	}
}

// agentWithLimits is an agent in a response about it alone.
func agentWithLimits(a redisstore.Agent) agentAnswer {
	answer := agentOf(a)
	answer.Limits, answer.Usage = new(a.Limits), agentUsageOf(a.Usage)
	return answer
}

// agentUsage is what is used of the limits, null for a limit that the agent does not have.
type agentUsage struct {
	ValueToday   *money.MicroUSD `json:"value_used_usd_today"`
	ResetsAt     *timestamp      `json:"resets_at"`
	OpenSessions *int64          `json:"open_sessions"`
}

func agentUsageOf(u redisstore.AgentUsage) *agentUsage {
	a := &agentUsage{ValueToday: u.ValueToday, OpenSessions: u.OpenSessions}
	if !u.ResetsAt.IsZero() {
		a.ResetsAt = new(timestamp(u.ResetsAt))
	}
	return a
}

// agentLimitReached refuses what exceeds a limit of the agent. What fits later is rate_limited, so that clients wait and repeat
// it; what waiting for a few seconds does not help is not.
func agentLimitReached(e *redisstore.AgentLimitError) problem {
	p := newProblem(403, "agent_limit_reached", "this does not fit into what the agent may still do; nothing was changed")
	if e.RetryAfter > 0 {
		p = newProblem(429, "rate_limited", "the agent acts faster than its limit allows; nothing was changed")
	}
	p.Limit, p.ResetsAt = e.Limit, timestamp(e.ResetsAt)
	return p
}

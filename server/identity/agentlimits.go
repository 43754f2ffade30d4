package identity

import (
	"remit/money"
	"remit/redisstore"
	"remit/server/internal/web"
)

// agentLimitsRequest are the limits in a request. One that is left out stays as it is; null is none.
type agentLimitsRequest struct {
	ValuePerDay      web.Nullable[money.MicroUSD] `json:"max_value_usd_per_day"`
	ActionsPerMinute web.Nullable[int64]          `json:"max_actions_per_minute"`
	OpenSessions     web.Nullable[int64]          `json:"max_open_sessions"`
}

// changes checks the limits; the zero value changes nothing.
func (r *agentLimitsRequest) changes(v *web.Validation) redisstore.NewAgentLimits {
	if r.ActionsPerMinute.Value != nil {
		v.Within("limits.max_actions_per_minute", *r.ActionsPerMinute.Value, 1, redisstore.MostActionsPerMinute)
	}
	if r.OpenSessions.Value != nil {
		v.Within("limits.max_open_sessions", *r.OpenSessions.Value, 0, redisstore.MostOpenSessions)
	}
	return redisstore.NewAgentLimits{
		ValuePerDay:      redisstore.LimitChange{Given: r.ValuePerDay.Given, Value: (*int64)(r.ValuePerDay.Value)},
		ActionsPerMinute: redisstore.LimitChange{Given: r.ActionsPerMinute.Given, Value: r.ActionsPerMinute.Value},
		OpenSessions:     redisstore.LimitChange{Given: r.OpenSessions.Given, Value: r.OpenSessions.Value},
	}
}

// limits checks the limits of a new agent.
func (r *agentLimitsRequest) limits(v *web.Validation) redisstore.AgentLimits {
	r.changes(v)
	return redisstore.AgentLimits{
		ValuePerDay: r.ValuePerDay.Value, ActionsPerMinute: r.ActionsPerMinute.Value, OpenSessions: r.OpenSessions.Value,
	}
}

// agentWithLimits is an agent in a response about it alone.
func agentWithLimits(a redisstore.Agent) AgentAnswer {
	answer := AgentOf(a)
	answer.Limits, answer.Usage = new(a.Limits), agentUsageOf(a.Usage)
	return answer
}

// AgentUsage is what is used of the limits, null for a limit that the agent does not have.
type AgentUsage struct {
	ValueToday   *money.MicroUSD `json:"value_used_usd_today"`
	ResetsAt     *web.Timestamp  `json:"resets_at"`
	OpenSessions *int64          `json:"open_sessions"`
}

func agentUsageOf(u redisstore.AgentUsage) *AgentUsage {
	a := &AgentUsage{ValueToday: u.ValueToday, OpenSessions: u.OpenSessions}
	if !u.ResetsAt.IsZero() {
		a.ResetsAt = new(web.Timestamp(u.ResetsAt))
	}
	return a
}

// AgentLimitReached refuses what exceeds a limit of the agent. What fits later is rate_limited, so that clients wait and repeat
// it; what waiting for a few seconds does not help is not.
func AgentLimitReached(e *redisstore.AgentLimitError) web.Problem {
	p := web.NewProblem(403, "agent_limit_reached", "this does not fit into what the agent may still do; nothing was changed")
	if e.RetryAfter > 0 {
		p = web.NewProblem(429, "rate_limited", "the agent acts faster than its limit allows; nothing was changed")
	}
	p.Limit, p.ResetsAt = e.Limit, web.Timestamp(e.ResetsAt)
	return p
}

package server

import (
	"errors"
	"strings"
	"time"

	"remit/redisstore"
	"remit/server/identity"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// storeProblem returns the problem of a store error that has members of its own.
func storeProblem(err error) (_ web.Problem, known bool) {
	var (
		wanting    *redisstore.NeededError
		notReady   *redisstore.NotReadyError
		parent     *redisstore.ParentError
		limit      *redisstore.LimitError
		budget     *redisstore.BudgetError
		belowUsed  *redisstore.BudgetBelowUsageError
		quota      *redisstore.QuotaError
		rate       *redisstore.RateError
		below      *redisstore.BelowUsageError
		notPending *redisstore.NotPendingError
		notActive  *redisstore.NotActiveError
		scope      *redisstore.ScopeError
		audience   *redisstore.AudienceError
		agentLimit *redisstore.AgentLimitError
		role       *redisstore.RoleError
		agent      *redisstore.AgentSuspendedError
		session    *redisstore.SessionSuspendedError
	)
	switch {
	case errors.As(err, &wanting):
		return withNeeded(wanting), true
	case errors.As(err, &notReady):
		return web.NewProblem(503, "unavailable", notReady.Reason), true
	case errors.As(err, &parent):
		return beyondParent(parent), true
	case errors.As(err, &budget):
		return budgetExhausted(budget), true
	case errors.As(err, &belowUsed):
		return budgetBelowUsage(belowUsed), true
	case errors.As(err, &limit):
		return limitReached(limit), true
	case errors.As(err, &agentLimit):
		return identity.AgentLimitReached(agentLimit), true
	case errors.As(err, &quota):
		return quotaExceeded(quota), true
	case errors.As(err, &rate):
		return web.NewProblem(429, "rate_limited", "your organization or agent creates too much at once; nothing was changed"), true
	case errors.As(err, &below):
		return limitBelowUsage(below), true
	case errors.As(err, &notPending):
		return transactionNotPending(notPending), true
	case errors.Is(err, redisstore.ErrNotReversible):
		return transactionNotReversible(), true
	case errors.As(err, &notActive):
		return sessionNotActive(notActive), true
	case errors.As(err, &scope):
		return web.NeedsScope(scope.Scope, "the session does not hold the scope"), true
	case errors.As(err, &audience):
		return access.ForeignTarget(audience).Problem(), true
	case errors.As(err, &role):
		return needsRole(role), true
	case errors.As(err, &agent):
		return suspended("agent_suspended", agent, agent.Since), true
	case errors.As(err, &session):
		return suspended("session_suspended", session, session.Since), true
	}
	return web.Problem{}, false
}

func limitReached(e *redisstore.LimitError) web.Problem {
	p := web.NewProblem(403, "session_limit_reached", "this does not fit into what the session may still do; nothing was charged")
	usage := web.UsageOf(e.Usage)
	p.Limit, p.LimitUsage = e.Limit, &usage
	return p
}

// withNeeded is the problem of a limit, with what the call wanted unless waiting helps.
func withNeeded(e *redisstore.NeededError) web.Problem {
	p := bareProblemOf(e.Err)
	if p.Status == 403 {
		p.Needed = web.NeededOf(&e.Needed)
	}
	return p
}

func beyondParent(e *redisstore.ParentError) web.Problem {
	p := limitReached(e.LimitError)
	p.Detail, p.Parent = "this does not fit into what the parent session may still do; nothing was changed", e.Parent
	return p
}

func budgetExhausted(e *redisstore.BudgetError) web.Problem {
	p := web.NewProblem(403, "budget_exhausted", "this does not fit into your organization's budget; nothing was changed")
	p.BudgetRoom, p.ResetsAt = &web.BudgetRoom{Remaining: e.Remaining}, web.Timestamp(e.Resets)
	return p
}

func budgetBelowUsage(e *redisstore.BudgetBelowUsageError) web.Problem {
	p := web.NewProblem(409, "limit_below_usage", e.Error())
	p.Limit = "max_value_usd"
	return p
}

func limitBelowUsage(e *redisstore.BelowUsageError) web.Problem {
	p := web.NewProblem(409, "limit_below_usage", e.Error())
	usage := web.UsageOf(e.Usage)
	p.Limit, p.LimitUsage = e.Limit, &usage
	return p
}

func quotaExceeded(e *redisstore.QuotaError) web.Problem {
	name := strings.ReplaceAll(e.Quota, "_", " ")
	p := web.NewProblem(403, "quota_exceeded", "your organization has reached its quota of "+name+"; nothing was changed")
	p.QuotaUsage = &web.QuotaUsage{Quota: e.Quota, Used: e.Used, Max: e.Max}
	return p
}

func transactionNotPending(e *redisstore.NotPendingError) web.Problem {
	p := web.NewProblem(409, "transaction_not_pending", e.Error())
	p.TransactionStatus = e.Status
	return p
}

func transactionNotReversible() web.Problem {
	p := web.NewProblem(409, "transaction_not_reversible", redisstore.ErrNotReversible.Error())
	p.TransactionStatus = redisstore.Committed
	return p
}

func sessionNotActive(e *redisstore.NotActiveError) web.Problem {
	p := web.NewProblem(403, "session_not_active", e.Error())
	p.SessionStatus = e.Status
	return p
}

func suspended(code string, err error, since time.Time) web.Problem {
	p := web.NewProblem(403, code, err.Error())
	p.Suspended = web.Timestamp(since)
	return p
}

func needsRole(e *redisstore.RoleError) web.Problem {
	p := web.NewProblem(403, "insufficient_role", "the API key's role may not do this")
	p.RequiredRole = e.Required
	return p
}

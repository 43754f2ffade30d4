package client

const (
	codeAgentSuspended    = "agent_suspended"
	codeSessionSuspended  = "session_suspended"
	codeAgentLimitReached = "agent_limit_reached"
	codeBudgetExhausted   = "budget_exhausted"
	codeRequestDecided    = "request_decided"
)

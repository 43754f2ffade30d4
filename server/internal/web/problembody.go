package web

import (
	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore"
)

// Problem is an RFC 9457 body.
type Problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Code      string       `json:"code"`
	RequestID string       `json:"request_id"`
	Errors    []FieldError `json:"errors,omitzero"`

	RequiredScope     string            `json:"required_scope,omitzero"`
	RequiredRole      redisstore.Role   `json:"required_role,omitzero"`
	SessionStatus     redisstore.Status `json:"session_status,omitzero"`
	TransactionStatus redisstore.Status `json:"transaction_status,omitzero"`
	Limit             string            `json:"limit,omitzero"`
	ResetsAt          Timestamp         `json:"resets_at,omitzero"`
	Suspended         Timestamp         `json:"suspended_at,omitzero"`
	Parent            uuid.UUID         `json:"parent_session_id,omitzero"`
	RetryAfter        int               `json:"retry_after_seconds,omitzero"` // of rate_limited, as in the header Retry-After
	*LimitUsage
	*QuotaUsage
	*BudgetRoom
	*Needed
}

// Needed is what a call wanted that a limit refused.
type Needed struct {
	Actions int64          `json:"needed_actions"`
	Value   money.MicroUSD `json:"needed_value_usd"`
}

func NeededOf(n *redisstore.Needed) *Needed {
	if n == nil {
		return nil
	}
	return &Needed{n.Actions, n.Value}
}

// BudgetRoom is what an organization's budget has left.
type BudgetRoom struct {
	Remaining money.MicroUSD `json:"remaining_usd"`
}

// InternalError is the code of a problem whose cause only the log has.
const InternalError = "internal_error"

// FieldError names what is wrong with one field of a request.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func NewProblem(status int, code, detail string) Problem {
	return Problem{Type: "urn:remit:problem:" + code, Title: Titles[code], Status: status, Detail: detail, Code: code}
}

// Titles are the titles of problems, by code: every code has one.
var Titles = map[string]string{
	"invalid_request":        "Invalid request",
	"not_found":              "Not found",
	"method_not_allowed":     "Method not allowed",
	"unsupported_media_type": "Unsupported media type",
	"body_too_large":         "Body too large",
	"headers_too_large":      "Headers too large",
	"request_timeout":        "Request timeout",
	"expectation_failed":     "Expectation failed",
	"missing_credentials":    "Missing credentials",
	"invalid_api_key":        "Invalid API key",
	"invalid_token":          "Invalid access token",
	"invalid_credentials":    "Invalid credentials",
	"invalid_refresh_token":  "Invalid refresh token",
	"invalid_dpop_proof":     "Invalid DPoP proof",
	"use_dpop_nonce":         "DPoP nonce outdated",
	"dpop_required":          "DPoP proof required",
	"invalid_target":         "Invalid resource",
	"insufficient_scope":     "Insufficient scope",
	"insufficient_role":      "Insufficient role",
	"last_admin_key":         "Last admin key",
	"issuer_exists":          "Issuer exists",
	"forbidden":              "Forbidden",
	"delegated_token":        "Delegated token",
	"held_by_gateway":        "Held by the gateway",
	"session_key_only":       "Session key only",
	"too_many_session_keys":  "Too many session keys",
	"session_key_unbound":    "Session key unbound",
	"organizations_closed":   "Organizations closed",
	"organization_suspended": "Organization suspended",
	"session_limit_reached":  "Session limit reached",
	"agent_limit_reached":    "Agent limit reached",
	"session_not_active":     "Session not active",
	"agent_suspended":        "Agent suspended",
	"session_suspended":      "Session suspended",
	"limit_below_usage":      "Limit below usage",
	"quota_exceeded":         "Quota exceeded",
	"budget_exhausted":       "Budget exhausted",
	"idempotency_key_reused": "Idempotency key reused",

	"transaction_not_pending":    "Transaction not pending",
	"transaction_not_reversible": "Transaction not reversible",

	"lease_settled":   "Lease settled",
	"request_decided": "Request decided",
	"agent_revoked":   "Agent revoked",
	"rate_limited":    "Rate limited",
	"outcome_unknown": "Outcome unknown",
	"unavailable":     "Unavailable",
	InternalError:     "Internal error",
}

// QuotaUsage names the quota that an organization has reached, and its usage.
type QuotaUsage struct {
	Quota string `json:"quota"`
	Used  int64  `json:"used"`
	Max   int64  `json:"max"`
}

// LimitUsage is what a session has used and what remains.
type LimitUsage struct {
	ActionCount      int64          `json:"action_count"`
	MaxActions       int64          `json:"max_actions"`
	ValueUsed        money.MicroUSD `json:"value_used_usd"`
	MaxValue         money.MicroUSD `json:"max_value_usd"`
	ValueHeld        money.MicroUSD `json:"value_held_usd"`
	RemainingActions int64          `json:"remaining_actions"`
	RemainingValue   money.MicroUSD `json:"remaining_value_usd"`
	Expires          Timestamp      `json:"expires_at"`
}

func UsageOf(u redisstore.Usage) LimitUsage {
	return LimitUsage{
		ActionCount: u.ActionCount, MaxActions: u.MaxActions,
		ValueUsed: u.ValueUsed, MaxValue: u.MaxValue, ValueHeld: u.ValueHeld,
		RemainingActions: u.RemainingActions(),
		RemainingValue:   u.RemainingValue(),
		Expires:          Timestamp(u.Expires),
	}
}

package server

import (
	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore"
)

// problem is an RFC 9457 body.
type problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Code      string       `json:"code"`
	RequestID string       `json:"request_id"`
	Errors    []fieldError `json:"errors,omitzero"`

	RequiredScope     string            `json:"required_scope,omitzero"`
	RequiredRole      redisstore.Role   `json:"required_role,omitzero"`
	SessionStatus     redisstore.Status `json:"session_status,omitzero"`
	TransactionStatus redisstore.Status `json:"transaction_status,omitzero"`
	Limit             string            `json:"limit,omitzero"`
	ResetsAt          timestamp         `json:"resets_at,omitzero"`
	Suspended         timestamp         `json:"suspended_at,omitzero"`
	Parent            uuid.UUID         `json:"parent_session_id,omitzero"`
	RetryAfter        int               `json:"retry_after_seconds,omitzero"` // of rate_limited, as in the header Retry-After
	*limitUsage
	*quotaUsage
	*budgetRoom
	*needed
}

// needed is what a call wanted that a limit refused.
type needed struct {
	Actions int64          `json:"needed_actions"`
	Value   money.MicroUSD `json:"needed_value_usd"`
}

func neededOf(n *redisstore.Needed) *needed {
	if n == nil {
		return nil
	}
	return &needed{n.Actions, n.Value}
}

// budgetRoom is what an organization's budget has left.
type budgetRoom struct {
	Remaining money.MicroUSD `json:"remaining_usd"`
}

// fieldError names what is wrong with one field of a request.
type fieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func newProblem(status int, code, detail string) problem {
	return problem{Type: "urn:remit:problem:" + code, Title: titles[code], Status: status, Detail: detail, Code: code}
}

var titles = map[string]string{
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
	"internal_error":  "Internal error",
}

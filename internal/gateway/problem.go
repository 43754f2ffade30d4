package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"

	"remit/money"
	"remit/server/pages"
)

// problem is what the gateway reads of an error of the API.
type problem struct {
	Status     int             `json:"status"`
	Code       string          `json:"code"`
	Detail     string          `json:"detail"`
	Limit      string          `json:"limit"`
	RetryAfter int             `json:"retry_after_seconds"`
	Remaining  *money.MicroUSD `json:"remaining_value_usd"`
}

// statuses are those of problems that the gateway answers with another status than the API: a limit that is reached is 402, which the
// providers' SDKs do not try again.
var statuses = map[string]int{
	"session_limit_reached": http.StatusPaymentRequired,
	"agent_limit_reached":   http.StatusPaymentRequired,
	"budget_exhausted":      http.StatusPaymentRequired,
	"quota_exceeded":        http.StatusForbidden,
}

// limitPerMinute is the only limit after which waiting helps.
const limitPerMinute = "max_actions_per_minute"

// refusalOf returns the refusal that a reply of the API is, nil for a success.
func refusalOf(reply pages.Reply) *refusal {
	if reply.Status < 400 {
		return nil
	}
	p := problem{Status: reply.Status}
	if json.Unmarshal(reply.Body, &p) != nil || p.Code == "" { // the API had no room to answer
		p = problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: "the gateway is overloaded; nothing was sent"}
	}
	r := refuse(p.Status, p.Code, p.Detail)
	r.remaining = p.Remaining
	if status, other := statuses[p.Code]; other {
		r.status = status
	}
	if p.Limit != "" {
		r.detail += ": " + p.Limit
	}
	wait, _ := strconv.Atoi(reply.RetryAfter)
	wait = max(wait, p.RetryAfter)
	switch {
	case p.Code == "agent_limit_reached" && p.Limit == limitPerMinute && wait > 0:
		r.status = http.StatusTooManyRequests
		return r.retryAfter(wait)
	case r.status == http.StatusTooManyRequests || r.status == http.StatusServiceUnavailable:
		return r.retryAfter(wait)
	}
	return r
}

func internalError(cause error) *refusal {
	r := refuse(http.StatusInternalServerError, "internal_error", "an internal error; it is logged under the request id")
	r.cause = cause
	return r
}

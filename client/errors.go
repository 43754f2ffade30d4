package client

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"
)

// Sentinel errors, for errors.Is.
var (
	// ErrOutcomeUnknown marks a write that may have taken effect: its response was lost.
	ErrOutcomeUnknown = errors.New("the outcome is unknown")
	// ErrUnavailable: the service or its Redis is unavailable. Nothing happened.
	ErrUnavailable = errors.New("the service is unavailable")
	// ErrUnauthorized: the API key, secret or token is not valid (401).
	ErrUnauthorized = errors.New("unauthorized")
	// ErrNotFound: there is no such object, or it belongs to another organization or agent (404).
	ErrNotFound = errors.New("not found")
	// ErrRateLimited: too many requests (429). Problem.RetryAfter says when to retry.
	ErrRateLimited = errors.New("rate limited")
	// ErrOrganizationSuspended: the operator of the service has suspended the organization (403).
	ErrOrganizationSuspended = errors.New("organization suspended")
	// ErrKeyReused: the idempotency key was used before, for another request (422).
	ErrKeyReused = errors.New("idempotency key reused")
	// ErrTransactionDone is returned by a Transaction that this process has committed or rolled back, without a request. A
	// deferred Rollback may ignore it.
	ErrTransactionDone = errors.New("remit: the transaction is committed or rolled back already")
)

// Problem is an error response. Every error type for one kind of refusal holds one.
type Problem struct {
	Status     int    // HTTP status code
	Code       string // such as invalid_request; empty when the response did not come from Remit
	Detail     string // for people
	RequestID  string // as in the service's log
	Fields     []FieldError
	RetryAfter time.Duration // 0: none
}

// FieldError says what is wrong with one field of a request.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// LimitReached refuses a charge or a transaction that exceeds a limit of its session. Nothing was charged.
type LimitReached struct {
	*Problem
	Limit string // max_actions, max_value_usd or max_committed_usd; of a lease also max_lease_seconds, max_open_leases or expires_at
	Usage
}

// QuotaExceeded refuses a request that exceeds a quota of the organization. Nothing was done.
type QuotaExceeded struct {
	*Problem
	Quota string // which one, such as agents
	Used  int64
	Max   int64
}

// LimitBelowUsage refuses a limit below what is used and held.
type LimitBelowUsage struct {
	*Problem
	Limit string // max_actions or max_value_usd
	Usage
}

// SessionNotActive refuses an operation that needs an active session.
type SessionNotActive struct {
	*Problem
	SessionStatus string // completed, expired or revoked
}

// InsufficientScope refuses an operation for which the access token or the session lacks a scope.
type InsufficientScope struct {
	*Problem
	RequiredScope string
}

// TransactionNotPending refuses to commit or roll back a transaction that is not pending.
type TransactionNotPending struct {
	*Problem
	TransactionStatus string // committed, rolled_back or expired
}

// TransactionNotReversible refuses to roll back a committed transaction that was begun as irreversible.
type TransactionNotReversible struct {
	*Problem
	TransactionStatus string
}

// problemHolder is a *Problem or a type that holds one.
type problemHolder interface {
	error
	problem() *Problem
}

func (p *Problem) problem() *Problem { return p }

func (e *LimitReached) Unwrap() error             { return e.Problem }
func (e *QuotaExceeded) Unwrap() error            { return e.Problem }
func (e *LimitBelowUsage) Unwrap() error          { return e.Problem }
func (e *SessionNotActive) Unwrap() error         { return e.Problem }
func (e *InsufficientScope) Unwrap() error        { return e.Problem }
func (e *TransactionNotPending) Unwrap() error    { return e.Problem }
func (e *TransactionNotReversible) Unwrap() error { return e.Problem }

// Error adds the limit and what remains of it.
func (e *LimitReached) Error() string {
	return e.text(fmt.Sprintf("%s: %d of %d actions and %s of %s USD left",
		e.Limit, e.RemainingActions, e.MaxActions, e.RemainingValue, e.MaxValue))
}

// Error adds the limit and what is used of it.
func (e *LimitBelowUsage) Error() string {
	return e.text(fmt.Sprintf("%s: %d actions and %s USD used, %s USD held", e.Limit, e.ActionCount, e.ValueUsed, e.ValueHeld))
}

// Error adds the quota and what is used of it.
func (e *QuotaExceeded) Error() string {
	return e.text(fmt.Sprintf("%s: %d of %d used", e.Quota, e.Used, e.Max))
}

// Error returns one line: status, code, detail, fields and request id, where present.
func (p *Problem) Error() string { return p.text("") }

// text returns the line of Error with the addition of a specific type.
func (p *Problem) text(more string) string {
	var text strings.Builder
	text.WriteString(strconv.Itoa(p.Status))
	if p.Code != "" {
		text.WriteString(" " + p.Code)
	}
	if p.Detail != "" {
		text.WriteString(": " + p.Detail)
	}
	for _, f := range p.Fields {
		if field := strings.TrimSpace(f.Field + " " + f.Message); !strings.Contains("; "+p.Detail+"; ", "; "+field+"; ") {
			text.WriteString("; " + field)
		}
	}
	if more != "" {
		text.WriteString("; " + more)
	}
	if p.RequestID != "" {
		text.WriteString(" (request " + p.RequestID + ")")
	}
	return text.String()
}

// Is matches the sentinel errors of this package.
func (p *Problem) Is(target error) bool {
	switch target {
	case ErrUnauthorized:
		return p.Status == http.StatusUnauthorized
	case ErrNotFound:
		return p.Status == http.StatusNotFound
	case ErrRateLimited:
		return p.Status == http.StatusTooManyRequests
	case ErrUnavailable:
		return p.Status == http.StatusServiceUnavailable && p.Code == codeUnavailable
	case ErrOrganizationSuspended:
		return p.Status == http.StatusForbidden && p.Code == codeOrganizationSuspended
	case ErrKeyReused:
		return p.Status == http.StatusUnprocessableEntity && p.Code == codeIdempotencyKeyReused
	}
	return false
}

// hasCode reports whether err is a problem with the code.
func hasCode(err error, code string) bool {
	var p *Problem
	return errors.As(err, &p) && p.Code == code
}

// problemFrom returns the error of an error response, in the type of its code.
func problemFrom(status int, header http.Header, body []byte) error {
	var fields struct {
		Code              string       `json:"code"`
		Detail            string       `json:"detail"`
		RequestID         string       `json:"request_id"`
		Errors            []FieldError `json:"errors"`
		Limit             string       `json:"limit"`
		SessionStatus     string       `json:"session_status"`
		TransactionStatus string       `json:"transaction_status"`
		RequiredScope     string       `json:"required_scope"`
		Quota             string       `json:"quota"`
		Used              int64        `json:"used"`
		Max               int64        `json:"max"`
		Usage
	}
	if json.Unmarshal(body, &fields) != nil || fields.Code == "" {
		return &Problem{Status: status, Detail: http.StatusText(status), RetryAfter: retryAfter(header)}
	}
	p := &Problem{
		Status: status, Code: fields.Code, Detail: fields.Detail, RequestID: fields.RequestID, Fields: fields.Errors,
		RetryAfter: retryAfter(header),
	}
	switch fields.Code {
	case codeSessionLimitReached:
		return &LimitReached{p, fields.Limit, fields.Usage}
	case codeLimitBelowUsage:
		return &LimitBelowUsage{p, fields.Limit, fields.Usage}
	case codeSessionNotActive:
		return &SessionNotActive{p, fields.SessionStatus}
	case codeInsufficientScope:
		return &InsufficientScope{p, fields.RequiredScope}
	case codeQuotaExceeded:
		return &QuotaExceeded{p, fields.Quota, fields.Used, fields.Max}
	case codeTransactionNotPending:
		return &TransactionNotPending{p, fields.TransactionStatus}
	case codeTransactionNotReversible:
		return &TransactionNotReversible{p, fields.TransactionStatus}
	}
	return p
}

// retryAfter reads the header in either form of RFC 9110 §10.2.3.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	seconds, err := strconv.Atoi(text)
	if err == nil || errors.Is(err, strconv.ErrRange) { // an out-of-range number is clamped
		return time.Duration(min(max(seconds, 0), 1<<30)) * time.Second
	}
	if moment, err := http.ParseTime(text); err == nil {
		return max(time.Until(moment), 0)
	}
	return 0
}

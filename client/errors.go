package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What errors.Is finds in an error.
var (
	// ErrOutcomeUnknown marks a write that may have happened or not: its answer was lost.
	ErrOutcomeUnknown = errors.New("the outcome is unknown")
	// ErrUnavailable: the service or its store cannot be used now. Nothing happened.
	ErrUnavailable = errors.New("the service is unavailable")
	// ErrUnauthorized: the API key, secret or token is not valid (401).
	ErrUnauthorized = errors.New("unauthorized")
	// ErrNotFound: there is no such object, or it belongs to somebody else (404).
	ErrNotFound = errors.New("not found")
	// ErrRateLimited: too many requests (429); Problem.RetryAfter says for how long.
	ErrRateLimited = errors.New("rate limited")
	// ErrOrganizationSuspended: the operator of the service has suspended the organization (403).
	ErrOrganizationSuspended = errors.New("organization suspended")
	// ErrKeyReused: the idempotency key was used before, for another request (422).
	ErrKeyReused = errors.New("idempotency key reused")
	// ErrTransactionDone is returned by a Transaction that was committed or rolled back already, without asking the
	// service. A deferred Rollback may ignore it.
	ErrTransactionDone = errors.New("remit: the transaction is committed or rolled back already")
)

// Problem is an answer other than success. Every refusal that has a type of its own holds one.
type Problem struct {
	Status     int    // of HTTP
	Code       string // machine-readable, such as invalid_request; empty when the answer did not come from Remit
	Detail     string // for people
	RequestID  string // as in the service's log
	Fields     []FieldError
	RetryAfter time.Duration // 0: not said
}

// FieldError says what is wrong with one field of a request.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// LimitReached refuses a charge or a transaction that does not fit into its session. Nothing was charged.
type LimitReached struct {
	*Problem
	Limit string // max_actions, max_value_usd or max_committed_usd
	Usage
}

// QuotaExceeded refuses what exceeds a quota of the organization. Nothing was done.
type QuotaExceeded struct {
	*Problem
	Quota string // which one, such as agents
	Used  int64
	Max   int64
}

// LimitBelowUsage refuses a change of limits to less than what is used and held.
type LimitBelowUsage struct {
	*Problem
	Limit string // max_actions or max_value_usd
	Usage
}

// SessionNotActive refuses what only an active session allows.
type SessionNotActive struct {
	*Problem
	SessionStatus string // completed, expired or revoked
}

// InsufficientScope refuses what the access token, or the session, lacks a scope for.
type InsufficientScope struct {
	*Problem
	RequiredScope string
}

// TransactionNotPending refuses to settle a transaction that is settled, or has expired.
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

// Error says besides which limit it is, and what is left.
func (e *LimitReached) Error() string {
	return e.text(fmt.Sprintf("%s: %d of %d actions and %s of %s USD left",
		e.Limit, e.RemainingActions, e.MaxActions, e.RemainingValue, e.MaxValue))
}

// Error says besides which limit it is, and what is used.
func (e *LimitBelowUsage) Error() string {
	return e.text(fmt.Sprintf("%s: %d actions and %s USD used, %s USD held", e.Limit, e.ActionCount, e.ValueUsed, e.ValueHeld))
}

// Error says besides which quota it is, and what is used.
func (e *QuotaExceeded) Error() string {
	return e.text(fmt.Sprintf("%s: %d of %d used", e.Quota, e.Used, e.Max))
}

// Error is one line: status, code, detail, fields and request id, as far as they are known.
func (p *Problem) Error() string { return p.text("") }

// text is the line, with what a type of its own adds to it.
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
		if said := strings.TrimSpace(f.Field + " " + f.Message); !strings.Contains("; "+p.Detail+"; ", "; "+said+"; ") {
			text.WriteString("; " + said)
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

// Is makes errors.Is find the sentinels of this package.
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

// problemFrom reads an answer other than success into the type that its code stands for.
func problemFrom(status int, header http.Header, body []byte) error {
	var said struct {
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
	if json.Unmarshal(body, &said) != nil || said.Code == "" {
		return &Problem{Status: status, Detail: http.StatusText(status), RetryAfter: retryAfter(header)}
	}
	p := &Problem{
		Status: status, Code: said.Code, Detail: said.Detail, RequestID: said.RequestID, Fields: said.Errors,
		RetryAfter: retryAfter(header),
	}
	switch said.Code {
	case codeSessionLimitReached:
		return &LimitReached{p, said.Limit, said.Usage}
	case codeLimitBelowUsage:
		return &LimitBelowUsage{p, said.Limit, said.Usage}
	case codeSessionNotActive:
		return &SessionNotActive{p, said.SessionStatus}
	case codeInsufficientScope:
		return &InsufficientScope{p, said.RequiredScope}
	case codeQuotaExceeded:
		return &QuotaExceeded{p, said.Quota, said.Used, said.Max}
	case codeTransactionNotPending:
		return &TransactionNotPending{p, said.TransactionStatus}
	case codeTransactionNotReversible:
		return &TransactionNotReversible{p, said.TransactionStatus}
	}
	return p
}

// retryAfter reads the header in either form of RFC 9110 §10.2.3.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	seconds, err := strconv.Atoi(text)
	if err == nil || errors.Is(err, strconv.ErrRange) { // out of range it is the number next to it
		return time.Duration(min(max(seconds, 0), 1<<30)) * time.Second
	}
	if moment, err := http.ParseTime(text); err == nil {
		return max(time.Until(moment), 0)
	}
	return 0
}

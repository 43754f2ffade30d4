package client

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"remit/money"
)

// Sentinel errors, for errors.Is.
var (
	// ErrOutcomeUnknown marks a write that may have taken effect: its response was lost.
	ErrOutcomeUnknown = errors.New("the outcome is unknown")
	// ErrUnavailable: the service or its Redis is unavailable. Nothing happened.
	ErrUnavailable = errors.New("the service is unavailable")
	// ErrUnauthorized: the API key, secret or token is not valid (401).
	ErrUnauthorized = errors.New("unauthorized")
	// ErrNotFound: there is no such object, or it belongs to another organization or agent (404, or 400 at the token endpoint).
	ErrNotFound = errors.New("not found")
	// ErrRateLimited: too many requests (429). Problem.RetryAfter says when to retry.
	ErrRateLimited = errors.New("rate limited")
	// ErrOrganizationSuspended: the operator of the service has suspended the organization (403, or 400 at the token endpoint).
	ErrOrganizationSuspended = errors.New("organization suspended")
	// ErrKeyReused: the idempotency key was used before, for another request (422).
	ErrKeyReused = errors.New("idempotency key reused")
	// ErrRequestDecided: the request for more was decided otherwise before (409).
	ErrRequestDecided = errors.New("request decided")
	// ErrLastAdminKey: the last admin key that never expires cannot be deleted (409).
	ErrLastAdminKey = errors.New("last admin key")
	// ErrIssuerExists: the organization has trusted this issuer before (409). Change that one.
	ErrIssuerExists = errors.New("issuer exists")
	// ErrDPoPRequired: the agent's tokens must be bound to a key. Set AgentOptions.DPoP.
	ErrDPoPRequired = errors.New("the agent must prove a key")
	// ErrDelegatedToken: a delegated token acts on its session alone, and may not make this call (403).
	ErrDelegatedToken = errors.New("not allowed to a delegated token")
	// ErrSessionKeyOnly: a session key acts on its session alone, and may not make this call (403).
	ErrSessionKeyOnly = errors.New("not allowed to a session key")
	// ErrTooManySessionKeys: the session has 8 keys (409).
	ErrTooManySessionKeys = errors.New("too many session keys")
	// ErrHeldByGateway: the metering gateway holds the transaction, and alone settles or changes it (403).
	ErrHeldByGateway = errors.New("held by the gateway")
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

// problemHolder is a *Problem or a type that holds one.
type problemHolder interface {
	error
	problem() *Problem
}

func (p *Problem) problem() *Problem { return p }

// Error returns one line: status, code, detail, fields and request id, where present.
func (p *Problem) Error() string {
	if p.Code == codeDpopRequired {
		return p.text(adviseDPoP)
	}
	return p.text("")
}

const adviseDPoP = "set AgentOptions.DPoP"

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
		return p.Status == http.StatusUnauthorized || p.Code == oauthInvalidGrant
	case ErrIssuerExists:
		return p.Status == http.StatusConflict && p.Code == codeIssuerExists
	case ErrDPoPRequired:
		return p.Code == codeDpopRequired
	case ErrDelegatedToken:
		return p.Code == codeDelegatedToken
	case ErrSessionKeyOnly:
		return p.Code == codeSessionKeyOnly
	case ErrTooManySessionKeys:
		return p.Code == codeTooManySessionKeys
	case ErrHeldByGateway:
		return p.Code == codeHeldByGateway
	case ErrNotFound:
		return p.Status == http.StatusNotFound || p.Code == codeNotFound
	case ErrRateLimited:
		return p.Status == http.StatusTooManyRequests
	case ErrUnavailable:
		return p.Status == http.StatusServiceUnavailable && p.Code == codeUnavailable
	case ErrOrganizationSuspended:
		return p.Code == codeOrganizationSuspended
	case ErrRequestDecided:
		return p.Status == http.StatusConflict && p.Code == codeRequestDecided
	case ErrLastAdminKey:
		return p.Status == http.StatusConflict && p.Code == codeLastAdminKey
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

// problemFields are what problems have beside those of Problem, by their codes.
type problemFields struct {
	Code              string       `json:"code"`
	Detail            string       `json:"detail"`
	RequestID         string       `json:"request_id"`
	Errors            []FieldError `json:"errors"`
	Limit             string       `json:"limit"`
	SessionStatus     string       `json:"session_status"`
	TransactionStatus string       `json:"transaction_status"`
	RequiredScope     string       `json:"required_scope"`
	RequiredRole      string       `json:"required_role"`
	Quota             string       `json:"quota"`
	Used              int64        `json:"used"`
	Max               int64        `json:"max"`

	ParentSessionID string         `json:"parent_session_id"`
	SuspendedAt     time.Time      `json:"suspended_at"`
	ResetsAt        time.Time      `json:"resets_at"`
	Remaining       money.MicroUSD `json:"remaining_usd"`
	NeededActions   int64          `json:"needed_actions"`
	NeededValue     money.MicroUSD `json:"needed_value_usd"`
	RetryAfter      int64          `json:"retry_after_seconds"` // as in the header, which an item of a batch does not have
	Usage
}

// problemFrom returns the error of an error response, in the type of its code.
func problemFrom(status int, header http.Header, body []byte) error {
	var fields problemFields
	if json.Unmarshal(body, &fields) != nil || fields.Code == "" {
		return &Problem{Status: status, Detail: http.StatusText(status), RetryAfter: retryAfter(header)}
	}
	return fields.problem(status, header)
}

// oauthProblemFrom is problemFrom for the endpoints whose errors have the form of RFC 6749 §5.2. The service's own code, where there
// is one, says more than that of the RFC.
func oauthProblemFrom(status int, header http.Header, body []byte) error {
	var answer struct {
		Code   string `json:"error"`
		Detail string `json:"error_description"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Code == "" {
		return problemFrom(status, header, body)
	}
	var fields problemFields
	if json.Unmarshal(body, &fields) != nil {
		fields = problemFields{}
	}
	fields.Code, fields.Detail = cmp.Or(fields.Code, answer.Code), answer.Detail
	return fields.problem(status, header)
}

// problem returns the error in the type of its code.
func (fields problemFields) problem(status int, header http.Header) error {
	p := &Problem{
		Status: status, Code: fields.Code, Detail: fields.Detail, RequestID: fields.RequestID, Fields: fields.Errors,
		RetryAfter: cmp.Or(retryAfter(header), clamped(fields.RetryAfter)),
	}
	switch p.Code {
	case codeInvalidTarget:
		return &InvalidTarget{p}
	case codeInvalidDpopProof, codeUseDpopNonce:
		if strings.Contains(header.Get("WWW-Authenticate"), `error="`+codeUseDpopNonce+`"`) {
			p.Code = codeUseDpopNonce
		}
		return &InvalidProof{Problem: p, ClockSkew: clockSkew(header)}
	case codeSessionLimitReached:
		return &LimitReached{p, fields.Limit, fields.ParentSessionID, fields.NeededActions, fields.NeededValue, fields.Usage}
	case codeAgentLimitReached:
		return &AgentLimitReached{p, fields.Limit, fields.ResetsAt, fields.NeededActions, fields.NeededValue}
	case codeBudgetExhausted:
		return &BudgetExhausted{p, fields.Remaining, fields.ResetsAt, fields.NeededActions, fields.NeededValue}
	case codeAgentSuspended:
		return &AgentSuspended{p, fields.SuspendedAt}
	case codeSessionSuspended:
		return &SessionSuspended{p, fields.SuspendedAt}
	case codeLimitBelowUsage:
		return &LimitBelowUsage{p, fields.Limit, fields.Usage}
	case codeSessionNotActive:
		return &SessionNotActive{p, fields.SessionStatus}
	case codeInsufficientScope:
		return &InsufficientScope{p, fields.RequiredScope}
	case codeInsufficientRole:
		return &InsufficientRole{p, fields.RequiredRole}
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
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) { // an out-of-range number is clamped
		return clamped(seconds)
	}
	if moment, err := http.ParseTime(text); err == nil {
		return max(time.Until(moment), 0)
	}
	return 0
}

// clamped returns seconds as a time to wait, within a range that every calculation with it can take.
func clamped(seconds int64) time.Duration {
	return time.Duration(min(max(seconds, 0), 1<<30)) * time.Second
}

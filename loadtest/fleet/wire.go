package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"remit/money"
)

// Names of the API that the fleet and the checks use.
const (
	codeLimitReached = "session_limit_reached"
	codeNotActive    = "session_not_active"
	codeUnavailable  = "unavailable"
	codeNotPending   = "transaction_not_pending"

	codeBudgetExhausted = "budget_exhausted"
	codeSuspended       = "session_suspended"

	limitActions     = "max_actions"
	limitValue       = "max_value_usd"
	statusActive     = "active"
	statusCompleted  = "completed"
	statusPending    = "pending"
	statusCommitted  = "committed"
	statusRolledBack = "rolled_back"
)

// tokenPair, sessionAnswer, endAnswer and transactionAnswer are the used members of the service's answers.
type tokenPair struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
}

// usable reports whether the pair is complete.
func (p tokenPair) usable() bool {
	return p.AccessToken != "" && p.RefreshToken != "" && p.TokenType == "bearer" && p.ExpiresIn > 0
}

type sessionAnswer struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	counts
	Overage money.MicroUSD `json:"value_overage_usd"`
}

// counts are the limits of a session and what it has of them.
type counts struct {
	ActionCount int64          `json:"action_count"`
	MaxActions  int64          `json:"max_actions"`
	ValueUsed   money.MicroUSD `json:"value_used_usd"`
	MaxValue    money.MicroUSD `json:"max_value_usd"`
	ValueHeld   money.MicroUSD `json:"value_held_usd"`
}

type endAnswer struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	EndedAt string `json:"ended_at"`
}

type transactionAnswer struct {
	ID        string         `json:"id"`
	Session   string         `json:"session_id"`
	Sequence  int64          `json:"sequence_number"`
	Status    string         `json:"status"`
	Value     money.MicroUSD `json:"value_usd"`
	ValueHeld money.MicroUSD `json:"value_held_usd"`
	Overage   money.MicroUSD `json:"overage_usd"`
}

// usage is the state of a session in the answer to an action, acknowledged or refused.
type usage struct {
	counts
	RemainingActions int64          `json:"remaining_actions"`
	RemainingValue   money.MicroUSD `json:"remaining_value_usd"`
}

// problem is the body of a refusal.
type problem struct {
	Code          string `json:"code"`
	Limit         string `json:"limit"`
	SessionStatus string `json:"session_status"`
	usage
}

// absent marks a member that an answer does not have. No member read here may be negative.
const absent = -1

// noCounts and noUsage have every member absent, as the initial values for decoding.
var (
	noCounts = counts{absent, absent, absent, absent, absent}
	noUsage  = usage{noCounts, absent, absent}
)

// complete returns an error that names the first absent member.
func (u usage) complete() error {
	for _, member := range [...]struct {
		name   string
		number int64
	}{
		{"action_count", u.ActionCount}, {"max_actions", u.MaxActions}, {"remaining_actions", u.RemainingActions},
		{"value_used_usd", int64(u.ValueUsed)}, {"max_value_usd", int64(u.MaxValue)}, {"value_held_usd", int64(u.ValueHeld)},
		{"remaining_value_usd", int64(u.RemainingValue)},
	} {
		if member.number < 0 {
			return fmt.Errorf("%s is missing or negative", member.name)
		}
	}
	return nil
}

// readUsage decodes the answer to an acknowledged action.
func readUsage(r reply) (usage, error) {
	u := noUsage
	if err := json.Unmarshal(r.body, &u); err != nil {
		return noUsage, err
	}
	return u, u.complete()
}

// readProblem decodes a refusal. An unreadable one has no code and no usage.
func readProblem(r reply) problem {
	p := problem{usage: noUsage}
	if err := json.Unmarshal(r.body, &p); err != nil {
		return problem{usage: noUsage}
	}
	return p
}

// readSession decodes a full session.
func readSession(r reply) (sessionAnswer, error) {
	s := sessionAnswer{counts: noCounts, Overage: absent}
	if err := json.Unmarshal(r.body, &s); err != nil {
		return sessionAnswer{}, err
	}
	if s.MaxActions < 0 || s.ActionCount < 0 || s.MaxValue < 0 || s.ValueUsed < 0 || s.ValueHeld < 0 || s.Overage < 0 {
		return sessionAnswer{}, errors.New("a limit or a usage is missing or negative")
	}
	return s, nil
}

// decoded decodes a body whose members the caller checks. What is unreadable is empty.
func decoded[T any](body []byte) T {
	var into T
	if err := json.Unmarshal(body, &into); err != nil {
		return *new(T)
	}
	return into
}

// readTransaction decodes a transaction.
func readTransaction(r reply) (transactionAnswer, error) {
	t := transactionAnswer{Sequence: absent, Value: absent, ValueHeld: absent, Overage: absent}
	if err := json.Unmarshal(r.body, &t); err != nil {
		return transactionAnswer{}, err
	}
	if t.Sequence < 0 || t.Value < 0 || t.ValueHeld < 0 || t.Overage < 0 {
		return transactionAnswer{}, errors.New("the sequence number or an amount is missing or negative")
	}
	return t, nil
}

// outcome is what the caller knows from a reply.
type outcome int

const (
	acknowledged outcome = iota // the service confirmed it
	refused                     // the service refused it and gave a reason
	unknown                     // no answer, or one that leaves the outcome open
)

// reply is an answer, or the error in its place.
type reply struct {
	status int // 0: no answer
	body   []byte
	err    error // set when status is 0
}

// outcome treats 200 and 201 as success and 4xx as a refusal. Anything else proves nothing.
func (r reply) outcome() outcome {
	switch {
	case r.status == http.StatusOK, r.status == http.StatusCreated:
		return acknowledged
	case r.status >= 400 && r.status < 500:
		return refused
	}
	return unknown
}

// isShed reports whether the service shed the request without doing anything.
func (r reply) isShed() bool {
	return r.status == http.StatusServiceUnavailable && readProblem(r).Code == codeUnavailable
}

// String describes the reply without the body of a success, which may contain a credential.
func (r reply) String() string {
	switch {
	case r.status == 0:
		return r.err.Error()
	case r.status >= 400:
		return fmt.Sprintf("%d %s", r.status, readProblem(r).Code)
	}
	return strconv.Itoa(r.status)
}

// Paths by which the recorder recognises requests for tokens.
const (
	authPaths   = "/v1/auth/"
	tokenPath   = authPaths + "token"
	refreshPath = authPaths + "refresh"
	verifyPath  = authPaths + "verify"
)

// Paths of requests that the fleet makes without the SDK.
const (
	sessionsPath = "/v1/sessions"
	budgetPath   = "/v1/budget"
)

package server

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/budgets"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// everyCode returns the codes that problems can have, with a status of each.
func everyCode() map[string]int {
	codes := map[string]int{internalError.code: internalError.status}
	for _, r := range rules {
		codes[r.code] = r.status
	}
	for _, err := range append([]error{&access.ProofError{Status: 401, Cause: token.ErrNonce}}, errorsWithMembers...) {
		p := problemOf(err)
		codes[p.Code] = p.Status
	}
	return codes
}

// errorsWithMembers holds one of each error whose answer has members of its own.
var errorsWithMembers = []error{
	web.Invalid("name", "is wrong"),
	&redisstore.LimitError{Limit: "max_actions"},
	&redisstore.NotActiveError{Status: redisstore.Expired},
	budgets.AsConflict(&redisstore.NotActiveError{Status: redisstore.Expired}),
	&redisstore.BelowUsageError{Limit: "max_actions"},
	&redisstore.BudgetError{}, &redisstore.BudgetBelowUsageError{},
	&redisstore.ParentError{LimitError: &redisstore.LimitError{Limit: "max_actions"}},
	&redisstore.QuotaError{Quota: "agents", Used: 1, Max: 1},
	&redisstore.NotPendingError{Status: redisstore.Expired},
	redisstore.ErrNotReversible,
	&redisstore.ScopeError{Scope: "read"},
	&redisstore.RoleError{Required: redisstore.Admin},
	&redisstore.AgentSuspendedError{Since: time.Unix(1, 0)},
	&redisstore.AgentLimitError{Limit: redisstore.LimitOpenSessions},
	&redisstore.SessionSuspendedError{Since: time.Unix(1, 0)},
	&web.ScopeError{Scope: "read"},
	&redisstore.AudienceError{Audience: "urn:mail"},
}

func TestEachCodeHasATitleAndEachTitleACode(t *testing.T) {
	t.Parallel()
	codes := everyCode()
	for code := range codes {
		if web.Titles[code] == "" {
			t.Errorf("%s has no title", code)
		}
	}
	seen := map[string]string{}
	for code, title := range web.Titles {
		if _, used := codes[code]; !used {
			t.Errorf("no error has the code %s", code)
		}
		wantEqual(t, "another code with the title of "+code, seen[title], "")
		seen[title] = code
	}
}

// Two rules may share a response only where clients must not learn the difference.
func TestEachRuleHasAMeaningOfItsOwn(t *testing.T) {
	t.Parallel()
	secret := map[string]bool{"invalid_api_key": true, "invalid_token": true, "invalid_refresh_token": true}
	errs, answers, statuses := map[error]bool{}, map[string]bool{}, map[string]int{}
	for _, r := range rules {
		if errs[r.err] {
			t.Errorf("%v stands there twice: the second never answers", r.err)
		}
		errs[r.err] = true
		p := problemOf(r.err)
		answer := p.Code + ": " + p.Detail
		if answers[answer] && !secret[p.Code] {
			t.Errorf("two errors are answered %s", answer)
		}
		answers[answer] = true
		if known := statuses[r.code]; known != 0 && known != r.status {
			t.Errorf("%s is %d and %d", r.code, known, r.status)
		}
		statuses[r.code] = r.status
	}
}

var snakeCase = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

func TestEachErrorIsAnsweredAsItsRuleSays(t *testing.T) {
	t.Parallel()
	for _, r := range rules {
		for _, err := range []error{r.err, fmt.Errorf("somewhere: %w", r.err), errors.Join(r.err, errors.New("the cause"))} {
			p := problemOf(err)
			if p.Status != r.status || p.Code != r.code {
				t.Errorf("%v is answered %d %s, want %d %s", err, p.Status, p.Code, r.status, r.code)
			}
			if p.Detail == "" || p.Type != "urn:remit:problem:"+p.Code || p.Title != web.Titles[p.Code] || !snakeCase.MatchString(p.Code) {
				t.Errorf("%v is answered %+v", err, p)
			}
			if (p.Status == 429 || p.Status == 503) && web.RetryAfter(err, p) < 1 {
				t.Errorf("%v is answered without a time to come again", err)
			}
			if strings.Contains(p.Detail, "somewhere") || strings.Contains(p.Detail, "cause") {
				t.Errorf("the answer tells where it happened: %s", p.Detail)
			}
		}
	}
}

func TestAnUnknownErrorIsAnsweredWithoutItsText(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errors.New("hunter2 at 10.0.0.1"), fmt.Errorf("%w: hunter2", errors.New("x")), web.ErrPanic} {
		p := problemOf(err)
		if p.Status != 500 || p.Code != "internal_error" {
			t.Errorf("%v is answered %d %s", err, p.Status, p.Code)
		}
		body, encodeErr := json.Marshal(p)
		if encodeErr != nil || strings.Contains(string(body), "hunter2") {
			t.Errorf("%v is answered %s, %v", err, body, encodeErr)
		}
	}
}

// The scope in a challenge stands between quotes (RFC 6750 §3).
func TestAScopeCannotLeaveItsQuotes(t *testing.T) {
	t.Parallel()
	err := &web.ScopeError{Scope: `a", error="x\"`}
	if got := access.ChallengeFor(err, problemOf(err), "https://remit.example/x"); strings.Count(got, `"`) != 8 {
		t.Errorf("WWW-Authenticate: %s", got)
	}
}

package client_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"encoding/json"

	"remit/client"
	"remit/money"
)

const limitMembers = `"limit":"max_value_usd","action_count":3,"max_actions":10,"value_used_usd":1.5,"max_value_usd":8,` +
	`"value_held_usd":0.25,"remaining_actions":7,"remaining_value_usd":6.25,"expires_at":"2026-11-21T09:19:32.859Z"`

const neededMembers = `"needed_actions":1,"needed_value_usd":6.5`

var usage = client.Usage{
	ActionCount: 3, MaxActions: 10, RemainingActions: 7,
	ValueUsed: 1_500_000, MaxValue: 8 * money.USD, ValueHeld: 250_000, RemainingValue: 6_250_000,
	ExpiresAt: time.Date(2026, 11, 21, 9, 19, 32, 859_000_000, time.UTC),
}

// as returns the error of type E that errors.As finds, or nil.
func as[E error](err error) any {
	var found E
	if !errors.As(err, &found) {
		return nil
	}
	return found
}

// sdk/same_test.go has the types that this test leaves out.
func TestProblemsHaveTypes(t *testing.T) {
	t.Parallel()
	problem := func(status int, code string) *client.Problem {
		return &client.Problem{Status: status, Code: code, Detail: "words", RequestID: "r-1"}
	}
	for _, test := range []struct {
		answer reaction
		find   func(error) any
		want   any
	}{
		{refusal(403, "session_limit_reached", `"parent_session_id":"s0"`, limitMembers, neededMembers), as[*client.LimitReached],
			&client.LimitReached{Problem: problem(403, "session_limit_reached"), Limit: "max_value_usd", ParentSessionID: "s0",
				NeededActions: 1, NeededValue: 6_500_000, Usage: usage}},
		{refusal(409, "limit_below_usage", limitMembers), as[*client.LimitBelowUsage],
			&client.LimitBelowUsage{Problem: problem(409, "limit_below_usage"), Limit: "max_value_usd", Usage: usage}},
		{refusal(403, "agent_limit_reached", `"limit":"max_actions_per_minute"`, neededMembers), as[*client.AgentLimitReached],
			&client.AgentLimitReached{Problem: problem(403, "agent_limit_reached"), Limit: "max_actions_per_minute", NeededActions: 1, NeededValue: 6_500_000}},
		{refusal(403, "budget_exhausted", `"remaining_usd":1`, neededMembers), as[*client.BudgetExhausted],
			&client.BudgetExhausted{Problem: problem(403, "budget_exhausted"), Remaining: money.USD, NeededActions: 1, NeededValue: 6_500_000}},
		{refusal(400, "invalid_request", `"errors":[{"field":"name","message":"is required"}]`), as[*client.Problem],
			&client.Problem{Status: 400, Code: "invalid_request", Detail: "words", RequestID: "r-1",
				Fields: []client.FieldError{{Field: "name", Message: "is required"}}}},
		{refusal(403, "a_code_of_tomorrow"), as[*client.Problem], problem(403, "a_code_of_tomorrow")},
		{reaction{status: 502, body: "<html>"}, as[*client.Problem], &client.Problem{Status: 502, Detail: "Bad Gateway"}},
		{reaction{status: 403, body: `{"code":7}`}, as[*client.Problem], &client.Problem{Status: 403, Detail: "Forbidden"}},
	} {
		f := &fake{react: inTurn(test.answer)}
		err := aRead(t.Context(), newClient(t, f, client.Options{}))
		if got := test.find(err); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: found %#v in %v", test.answer.body, got, err)
		}
		if as[*client.Problem](err) == nil {
			t.Errorf("%s: holds no Problem", test.answer.body)
		}
	}
}

// Nothing that fmt, slog or an error prints holds a credential.
func TestCredentialsAreNotPrinted(t *testing.T) {
	t.Parallel()
	const secret, key = "rms_secret", "rmk_secret"
	f := &fake{react: issues(inTurn(refusal(403, "forbidden"), fails(errReset)))}
	remit := newClient(t, f, client.Options{MaxAttempts: 1})
	agent, organization := remit.Agent("a1", secret), remit.Organization(key)
	session := agent.Session("s1")
	_, refused := session.Charge(t.Context(), client.Charge{})
	_, lost := session.Charge(t.Context(), client.Charge{})
	_, none := organization.GetSession(t.Context(), "s1")

	var printed strings.Builder
	log := slog.New(slog.NewJSONHandler(&printed, nil))
	for _, value := range []any{
		remit, agent, *agent, organization, *organization, session, *session, refused, lost, none,
		client.Credential(secret), client.AgentInfo{Secret: secret}, &client.OrganizationInfo{APIKey: key},
		client.TokenPair{AccessToken: secret, RefreshToken: secret},
		client.RotatedKey{APIKey: key}, []client.RotatedSecret{{Secret: secret}}, client.OrganizationParams{BootstrapToken: key},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t"} {
			fmt.Fprintf(&printed, verb+"\n", value)
		}
		log.Info("value", "value", value)
	}
	for _, hidden := range []string{"secret", "access-1", "refresh-1", fmt.Sprintf("%x", "secret")} {
		if i := strings.Index(printed.String(), hidden); i >= 0 {
			t.Errorf("printed: %.120s", printed.String()[max(i-60, 0):])
		}
	}
}

// Marshaling a created secret fails, so that JSON neither leaks nor loses it.
func TestACredentialCannotBeMarshaled(t *testing.T) {
	t.Parallel()
	if text, err := json.Marshal(client.AgentInfo{Secret: "rms_secret"}); err == nil {
		t.Errorf("%s", text)
	}
	if _, err := json.Marshal(client.AgentInfo{}); err != nil {
		t.Errorf("without a secret: %v", err)
	}
	var info client.AgentInfo
	if err := json.Unmarshal([]byte(`{"secret":"rms_secret"}`), &info); err != nil || string(info.Secret) != "rms_secret" {
		t.Errorf("read: %q, %v", string(info.Secret), err)
	}
}

// A redirect would carry the credential elsewhere.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	followed := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	defer elsewhere.Close()
	service := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer service.Close()
	for _, given := range []*http.Client{nil, {}} {
		remit := must(client.New(service.URL, client.Options{HTTPClient: given}))(t)
		var problem *client.Problem
		if err := aRead(t.Context(), remit); !errors.As(err, &problem) || problem.Status != 307 || followed {
			t.Errorf("%v, followed: %t", err, followed)
		}
	}
}

func TestBaseURLs(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"http://h":                 "http://h/v1/sessions/s1",
		"https://h:8443/":          "https://h:8443/v1/sessions/s1",
		"https://h/behind/proxy/":  "https://h/behind/proxy/v1/sessions/s1",
		"h:8080":                   "",
		"":                         "",
		"ftp://h":                  "",
		"http://":                  "",
		"http://me:rms_secret@h":   "",
		"http://h?x=1":             "",
		"http://h#x":               "",
		"http://me:rms_secret@h:x": "",
	} {
		asked := ""
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = r.URL.String()
			return nil, io.EOF
		})
		remit, err := client.New(base, client.Options{MaxAttempts: 1, HTTPClient: &http.Client{Transport: transport}})
		if err == nil {
			aRead(t.Context(), remit)
		} else if strings.Contains(err.Error(), "rms_secret") {
			t.Errorf("%s: %v", base, err)
		}
		if asked != want || (err == nil) != (want != "") {
			t.Errorf("%s: asked %q, %v", base, asked, err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

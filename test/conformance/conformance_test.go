package conformance

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"remit/openapi"
	"remit/test/suite"
)

const (
	agentID   = "01a1fd30-7159-7864-bfd3-2670b8006c57"
	sessionID = "01a1fd30-717a-7969-8ec8-e3757bbb6c57"
	charged   = `{"session_id":"` + sessionID + `","action_count":1,"max_actions":2,"value_used_usd":0.37,"max_value_usd":0.5,` +
		`"value_held_usd":0,"remaining_actions":1,"remaining_value_usd":0.13,"expires_at":"2026-11-21T09:19:32.859Z"}`
	refused = `{"type":"urn:remit:problem:session_limit_reached","title":"Session limit reached","status":403,"detail":"no",` +
		`"code":"session_limit_reached","request_id":"r-1","limit":"max_value_usd","needed_actions":1,"needed_value_usd":0.2,"action_count":1,"max_actions":2,` +
		`"value_used_usd":0.37,"max_value_usd":0.5,"value_held_usd":0,"remaining_actions":1,"remaining_value_usd":0.13,` +
		`"expires_at":"2026-11-21T09:19:32.859Z"}`
	notFound = `{"type":"urn:remit:problem:not_found","title":"Not found","status":404,"detail":"no","code":"not_found","request_id":"r-1"}`
)

// exchangeWith returns a valid exchange.
func exchangeWith(status int, received string) *Exchange {
	mediaType := "application/json"
	if status >= 400 {
		mediaType = "application/problem+json"
	}
	return &Exchange{
		Method: "POST", Target: "/v1/sessions/" + sessionID + "/actions", Status: status, Received: []byte(received),
		Request: http.Header{"Content-Type": {"application/json"}}, Sent: []byte(`{"value_usd":0.37,"count":5}`),
		Answer: http.Header{"Content-Type": {mediaType}, "X-Request-Id": {"r-1"}, "X-Content-Type-Options": {"nosniff"}},
	}
}

func newSuite(t *testing.T) *Suite {
	t.Helper()
	shared := suite.Must(Shared())(t)
	return &Suite{schemas: shared.schemas, routes: shared.routes, components: shared.components,
		outside: shared.outside, seen: map[*openapi3.Operation]map[string]bool{}}
}

// A suite that has accepted the valid exchange must report each change, and for the right reason.
func TestCheckReportsDeviationsFromTheDescription(t *testing.T) {
	t.Parallel()
	suite := newSuite(t)
	replaced := func(old, new string) func(*Exchange) {
		return func(e *Exchange) {
			text := strings.Replace(string(e.Received), old, new, 1)
			if text == string(e.Received) {
				t.Errorf("the body does not contain %s", old)
			}
			e.Received = []byte(text)
		}
	}
	for name, tc := range map[string]struct {
		status int
		body   string
		change func(*Exchange)
		want   string // in the error
	}{
		"a path":                       {200, charged, func(e *Exchange) { e.Target = "/v1/budgets" }, "no such path"},
		"a path below another":         {200, charged, func(e *Exchange) { e.Target += "/7" }, "no such path"},
		"a method":                     {200, charged, func(e *Exchange) { e.Method = "PUT" }, "no such method"},
		"a status":                     {202, charged, func(*Exchange) {}, "no status 202"},
		"a field":                      {200, charged, replaced(`"max_actions":2`, `"max_actions":2,"colour":"red"`), "colour"},
		"a field of a problem":         {403, refused, replaced(`"limit"`, `"colour":"red","limit"`), "colour"},
		"a missing field":              {200, charged, replaced(`"max_actions":2,`, ""), "max_actions"},
		"a missing field of a problem": {403, refused, replaced(`"limit":"max_value_usd",`, ""), "limit"},
		"a type":                       {200, charged, replaced(`"action_count":1`, `"action_count":"1"`), "action_count"},
		"a fraction of a count":        {200, charged, replaced(`"action_count":1`, `"action_count":1.5`), "action_count"},
		"a null":                       {200, charged, replaced(`"action_count":1`, `"action_count":null`), "action_count"},
		"a bound":                      {200, charged, replaced(`0.37`, `-1`), "value_used_usd"},
		"a format of an id":            {200, charged, replaced(`01a1fd30-7`, `01A1FD30-7`), "session_id"},
		"a format of a time":           {200, charged, replaced(`32.859Z`, `32Z`), "expires_at"},
		"a time of fewer digits":       {200, charged, replaced(`32.859Z`, `32.85Z`), "expires_at"},
		"a time of more digits":        {200, charged, replaced(`32.859Z`, `32.859000001Z`), "expires_at"},
		"a seventh decimal":            {200, charged, replaced(`0.37`, `0.3700001`), "value_used_usd"},
		"a decimal beyond float64":     {200, charged, replaced(`0.37`, `0.37000000000000000001`), "value_used_usd"},
		"a code":                       {404, notFound, replaced(`:"not_found"`, `:"gone"`), "code"},
		"a code of another status":     {404, notFound, replaced(`:"not_found"`, `:"agent_revoked"`), "code"},
		"a status in the body":         {404, notFound, replaced(`404`, `410`), "status"},
		"an array":                     {200, "[" + charged + "]", func(*Exchange) {}, "object"},
		"no JSON":                      {200, charged, replaced("}", ""), "unexpected EOF"},
		"a media type": {200, charged, func(e *Exchange) { e.Answer.Set("Content-Type", "text/plain") },
			"is not text/plain"},
		"no media type":                   {200, charged, func(e *Exchange) { e.Answer.Del("Content-Type") }, "Content-Type"},
		"a header":                        {200, charged, func(e *Exchange) { e.Answer.Set("X-Colour", "red") }, "no header X-Colour"},
		"a missing header":                {200, charged, func(e *Exchange) { e.Answer.Del("X-Request-Id") }, "X-Request-Id"},
		"a header twice":                  {200, charged, func(e *Exchange) { e.Answer.Add("X-Request-Id", "r-2") }, "2 times"},
		"a form of a header":              {200, charged, func(e *Exchange) { e.Answer.Set("X-Request-Id", "r 1") }, "X-Request-Id"},
		"a field of a request":            {200, charged, func(e *Exchange) { e.Sent = []byte(`{"colour":"red"}`) }, "colour"},
		"a type of a request":             {200, charged, func(e *Exchange) { e.Sent = []byte(`{"count":"1"}`) }, "count"},
		"a bound of a request":            {200, charged, func(e *Exchange) { e.Sent = []byte(`{"count":1001}`) }, "count"},
		"a bound of a request, by digits": {200, charged, func(e *Exchange) { e.Sent = []byte(`{"value_usd":0.37,"count":5000}`) }, "count"},
		"a character set":                 {200, charged, func(e *Exchange) { e.Answer.Set("Content-Type", "application/json; charset=latin1") }, "latin1"},
		"a character set of a request":    {200, charged, func(e *Exchange) { e.Request.Set("Content-Type", "application/json; charset=latin1") }, "latin1"},
		"an id in a path": {200, charged, func(e *Exchange) { e.Target = "/v1/sessions/7/actions" },
			`parameter id`},
		"a length of a header": {200, charged, func(e *Exchange) { e.Request.Set("Idempotency-Key", strings.Repeat("k", 256)) },
			"Idempotency-Key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := exchangeWith(tc.status, tc.body)
			if tc.status != 202 && tc.body[0] == '{' {
				if err := suite.Check(e); err != nil {
					t.Fatalf("the valid exchange: %v", err)
				}
			}
			tc.change(e)
			switch err := suite.Check(e); {
			case err == nil:
				t.Error("the suite accepts it")
			case !strings.Contains(reasonOf(err), tc.want):
				t.Errorf("wrong reason: %v", err)
			}
		})
	}
}

// reasonOf returns an error without its first line, which repeats the exchange.
func reasonOf(err error) string {
	_, reason, _ := strings.Cut(err.Error(), "\n")
	return reason
}

func TestCheckJudgesResponsesWithoutAnOperation(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method, target, allow string
		status                int
		right                 bool
	}{
		"nothing there":            {"GET", "/nothing", "", 404, true},
		"a path that is described": {"POST", "/healthz", "", 404, true},
		"a body for nothing":       {"GET", "/nothing", "", 200, false},
		"a method":                 {"POST", "/healthz", "GET, HEAD", 405, true},
		"a method that Allow has not": {
			"POST", "/healthz", "GET", 405, false},
		"no HTTP": {"", "", "", 400, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code := map[int]string{400: "invalid_request", 404: "not_found", 405: "method_not_allowed"}[tc.status]
			body, _ := json.Marshal(map[string]any{"type": "urn:remit:problem:" + code, "title": "t", "status": tc.status,
				"detail": "d", "code": code, "request_id": "r-1"})
			e := exchangeWith(tc.status, string(body))
			e.Method, e.Target = tc.method, tc.target
			if e.Answer.Set("Content-Type", "application/problem+json"); tc.allow != "" {
				e.Answer.Set("Allow", tc.allow)
			}
			if err := newSuite(t).Check(e); (err == nil) != tc.right {
				t.Errorf("%v, want right %t", err, tc.right)
			}
		})
	}
}

// A suite that has accepted an exchange must still check one that differs by a digit or a word.
func TestCheckReusesNoVerdictForASimilarExchange(t *testing.T) {
	t.Parallel()
	const keys = `{"keys":[{"kty":"OKP","use":"sig","alg":"ES256","kid":"k1"}]}`
	published := &Exchange{
		Method: "GET", Target: "/.well-known/jwks.json", Status: 200, Received: []byte(keys), Request: http.Header{},
		Answer: http.Header{"Content-Type": {"application/jwk-set+json"}, "X-Request-Id": {"r-1"},
			"X-Content-Type-Options": {"nosniff"}, "Cache-Control": {"public, max-age=300"}},
	}
	suite := newSuite(t)
	if err := suite.Check(published); err != nil {
		t.Fatal(err)
	}
	otherKind, otherAge := *published, *published
	otherKind.Received = []byte(strings.Replace(keys, "ES256", "HS256", 1))
	if err := suite.Check(&otherKind); err == nil || !strings.Contains(reasonOf(err), "alg") {
		t.Errorf("an unknown algorithm: %v", err)
	}
	otherAge.Answer = published.Answer.Clone()
	otherAge.Answer.Set("Cache-Control", "public, max-age=999999")
	if err := suite.Check(&otherAge); err == nil || !strings.Contains(reasonOf(err), "Cache-Control") {
		t.Errorf("another age: %v", err)
	}
}

func TestUnseenNamesMissingSuccessesAndErrors(t *testing.T) {
	t.Parallel()
	described := suite.Must(Of(openapi.JSON().Body))(t)
	const name, refusal = "POST /v1/sessions/{id}/actions", "POST /v1/sessions/{id}/actions: 403 session_limit_reached"
	if operations, refusals := described.Unseen(); !slices.Contains(operations, name) || !slices.Contains(refusals, refusal) {
		t.Errorf("before any exchange, unseen are %v and %v", operations, refusals)
	}
	if err := described.Check(exchangeWith(403, refused)); err != nil {
		t.Fatal(err)
	}
	if operations, refusals := described.Unseen(); !slices.Contains(operations, name) || slices.Contains(refusals, refusal) {
		t.Errorf("after the refusal, unseen are %v and %v", operations, refusals)
	}
	if err := described.Check(exchangeWith(200, charged)); err != nil {
		t.Fatal(err)
	}
	if operations, _ := described.Unseen(); slices.Contains(operations, name) {
		t.Error("after the success, the operation is still unseen")
	}
}

package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"testing"

	"remit/client"
)

// FuzzAnswer gives calls responses that the service never sends, as a proxy or another service might. Only JSON of the right
// kind passes for success, an error says what is known, and no response keeps a call running forever.
func FuzzAnswer(f *testing.F) {
	const problem = `{"status":503,"code":"unavailable","detail":"d","request_id":"r","errors":[{"field":"f","message":"m"}]}`
	for i, seed := range []struct {
		status     int
		body, link string
		retryAfter string
	}{
		{200, usageBody, "", ""}, {200, "{}", "", ""}, {200, "null", "", ""}, {200, " null\n", "", ""}, {200, "[]", "", ""}, {200, "[null]", "", ""}, {200, "", "", ""},
		{200, "<html>", "", ""}, {200, "[{}]", `</v1/sessions?cursor=a>; rel="next"`, ""}, {200, "[]", `</v1/sessions?cursor=a>; rel="next"`, ""},
		{200, `{"access_token":"a","refresh_token":"b","expires_in":9223372036854775807}`, "", ""}, {200, `{"access_token":"a","refresh_token":"b","expires_in":9223372037}`, "", ""},
		{200, `{"access_token":"a","expires_in":1}`, "", ""}, {200, `{"access_token":"a","expires_in":-1}`, "", ""}, {200, `{"access_token":"a\r\nX: y","expires_in":3600}`, "", ""},
		{200, `[{"status":200,"body":null}]`, "", ""}, {200, `[{"status":200}]`, "", ""}, {200, `[{"status":500,"body":{}}]`, "", ""}, {200, `[{}]`, "", ""},
		{200, `{"action_count":1e400}`, "", ""}, {200, `{"value_used_usd":-1}`, "", ""}, {200, `{"expires_at":"10000-01-01T00:00:00Z"}`, "", ""}, {200, usageBody + "{}", "", ""},
		{201, "{}", "", ""}, {202, "{}", "", ""}, {204, "", "", ""}, {206, usageBody, "", ""}, {301, "", "", ""}, {400, problem, "", ""}, {401, "", "", ""}, {404, "null", "", ""},
		{403, `{"code":"session_limit_reached","limit":"max_actions","action_count":1}`, "", ""}, {403, `{"code":"session_limit_reached","limit":7}`, "", ""},
		{409, `{"code":"transaction_not_pending"}`, "", ""}, {429, problem, "", "99999999999999999999"}, {429, "{}", "", "Fri, 31 Dec 9999 23:59:59 GMT"}, {429, "{}", "", "-1"},
		{500, "{}", "", ""}, {502, "<html>", "", ""}, {503, problem, "", "1"}, {503, `{"code":"outcome_unknown"}`, "", ""}, {503, "", "", ""},
		{200, "[{}]", `<%zz>; rel="next"`, ""}, {200, "[{}]", `>;rel="next"<`, ""}, {200, "[{}]", `<?cursor=%00%0a>; rel="next"`, ""},
	} {
		for operation := range operations {
			if i%3 == operation%3 { // fuzzing begins when all seeds have been tried
				f.Add(uint8(operation), seed.status, []byte(seed.body), seed.link, seed.retryAfter)
			}
		}
	}
	f.Fuzz(func(t *testing.T, operation uint8, status int, body []byte, link, retryAfter string) {
		if status < 200 || status > 599 {
			return // net/http hands on no other
		}
		header := http.Header{}
		header.Set("Link", link)
		header.Set("Retry-After", retryAfter)
		odd := reaction{status: status, header: header, body: string(body)}
		asked := operations[int(operation)%len(operations)]
		server := &fake{react: func(n int, r seen) reaction {
			if n > 3 { // it makes no progress
				t.Fatalf("%s is sent for ever", r.path)
			}
			if r.path == exchangePath && asked.path != exchangePath {
				return pair(1)
			}
			return odd
		}}
		err := asked.do(t, newClient(t, server, client.Options{MaxAttempts: 1}))
		requireHonest(t, asked.writes, odd, err)
	})
}

// requireHonest checks that the result of a call matches the one response that it got.
func requireHonest(t *testing.T, writes bool, got reaction, err error) {
	t.Helper()
	problem, isProblem := errors.AsType[*client.Problem](err)
	unknown, unavailable := errors.Is(err, client.ErrOutcomeUnknown), errors.Is(err, client.ErrUnavailable)
	success := got.status == http.StatusOK || got.status == http.StatusCreated
	switch {
	case err == nil:
		if text := bytes.TrimSpace([]byte(got.body)); !success || !json.Valid(text) || string(text) == "null" {
			t.Errorf("%d %q passes for success", got.status, got.body)
		}
	case unknown && unavailable:
		t.Errorf("%d %q: %v says both that it may have happened and that it did not", got.status, got.body, err)
	case unknown && !writes:
		t.Errorf("%d %q: %v, of a read", got.status, got.body, err)
	case success:
		if writes && !unknown && !isProblem { // a *Problem is one of a batch's results
			t.Errorf("%d %q: %v, though it was done", got.status, got.body, err)
		}
	case !isProblem || problem.Status != got.status:
		t.Errorf("%d %q: %v is no Problem with its status", got.status, got.body, err)
	case writes && got.status >= 500 && !unknown && !unavailable, writes && got.status < 300 && !unknown:
		t.Errorf("%d %q: %v, but it may have happened", got.status, got.body, err)
	case got.status >= 300 && got.status < 500 && unknown:
		t.Errorf("%d %q: %v, but it was refused", got.status, got.body, err)
	}
	if isProblem && problem.RetryAfter < 0 {
		t.Errorf("Retry-After %q is read as %s", got.header.Get("Retry-After"), problem.RetryAfter)
	}
}

// operations are calls that read responses of every kind.
var operations = []struct {
	path   string // that gets the odd answer, where others do not
	writes bool
	do     func(*testing.T, *client.Client) error
}{
	{exchangePath, false, func(t *testing.T, c *client.Client) error { return second(c.Agent("a1", "secret").Token(t.Context())) }},
	{"", true, func(t *testing.T, c *client.Client) error {
		return second(c.Agent("a1", "secret").Session("s1").Charge(t.Context(), client.Charge{}))
	}},
	{"", false, func(t *testing.T, c *client.Client) error {
		return second(c.Agent("a1", "secret").Session("s1").Get(t.Context()))
	}},
	{"", true, func(t *testing.T, c *client.Client) error {
		results, err := c.Agent("a1", "secret").ChargeMany(t.Context(), []client.SessionCharge{{SessionID: "s1"}}, client.BatchOptions{})
		for _, result := range results {
			err = errors.Join(err, result.Err)
		}
		return err
	}},
	{"", true, func(t *testing.T, c *client.Client) error {
		return second(c.Agent("a1", "secret").Session("s1").Begin(t.Context(), client.TransactionParams{}))
	}},
	{"", true, func(t *testing.T, c *client.Client) error {
		return c.Agent("a1", "secret").Transaction("t1").Commit(t.Context(), client.CommitParams{})
	}},
	{"", false, func(t *testing.T, c *client.Client) error {
		return errorOf(c.Organization("key").Sessions(t.Context(), client.SessionFilter{}))
	}},
	{"", true, func(t *testing.T, c *client.Client) error {
		return second(c.CreateOrganization(t.Context(), client.OrganizationParams{}))
	}},
	{"", false, func(t *testing.T, c *client.Client) error {
		return second(c.Organization("key").Info(t.Context(), "o1"))
	}},
	{"", false, func(t *testing.T, c *client.Client) error {
		return errorOf(c.Organization("key").Families(t.Context(), "a1"))
	}},
	{"", true, func(t *testing.T, c *client.Client) error { return c.Organization("key").EndSession(t.Context(), "s1") }},
}

// errorOf reads a list to its end.
func errorOf[E any](list iter.Seq2[E, error]) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

package conformance

import (
	"net/http"
	"strings"
	"testing"
)

const invalid = `{"type":"urn:remit:problem:invalid_request","title":"Invalid request","status":400,"detail":"no","code":"invalid_request",` +
	`"request_id":"r-1","errors":[{"field":"count","message":"no"}]}`

// answered returns an exchange with status 200.
func answered(target, sent, received string) *Exchange {
	e := exchangeWith(http.StatusOK, received)
	e.Target, e.Sent = target, []byte(sent)
	if strings.HasSuffix(target, "/introspect") {
		e.Answer.Set("Cache-Control", "no-store")
	}
	return e
}

func TestTheStatusOfABatchItemIsTiedToItsBody(t *testing.T) {
	t.Parallel()
	suite := newSuite(t)
	const right, wrong = `{"session_id":"` + sessionID + `"}`, `{"session_id":"` + sessionID + `","count":0}`
	result := func(status, body string) string { return `{"status":` + status + `,"body":` + body + `}` }
	for name, tc := range map[string]struct {
		items, results string
		want           string // in the error, "" for none
	}{
		"valid":                  {right + "," + wrong, result("200", charged) + "," + result("400", invalid), ""},
		"refused":                {right + "," + right, result("403", refused) + "," + result("404", notFound), ""},
		"a charge under 403":     {right, result("403", charged), "status"},
		"a refusal under 200":    {right, result("200", refused), "status"},
		"another status inside":  {right, result("404", strings.Replace(notFound, "404", "403", 1)), "404"},
		"an extra field inside":  {right, result("200", strings.Replace(charged, "{", `{"colour":"red",`, 1)), "colour"},
		"a charge of a bad item": {right + "," + wrong, result("200", charged) + "," + result("200", charged), "actions[1]"},
		"a missing result":       {right + "," + right, result("200", charged), "2 items of actions have 1 results"},
	} {
		err := suite.Check(answered("/v1/actions", `{"actions":[`+tc.items+`]}`, "["+tc.results+"]"))
		switch {
		case (err == nil) != (tc.want == ""):
			t.Errorf("%s: %v", name, err)
		case err != nil && !strings.Contains(reasonOf(err), tc.want):
			t.Errorf("%s: wrong reason: %v", name, err)
		}
	}
}

func TestIntrospectionFieldsAreTiedToActive(t *testing.T) {
	t.Parallel()
	suite := newSuite(t)
	const live = `{"active":true,"scope":"a b","client_id":"` + agentID + `","token_type":"Bearer","exp":2,"iat":1,"sub":"` + agentID +
		`","iss":"remit","aud":"remit","agent_id":"` + agentID + `","org_id":"` + agentID + `"}`
	for text, right := range map[string]bool{
		live:                          true,
		`{"active":false}`:            true,
		`{"active":true}`:             false,
		`{"active":false,"scope":""}`: false,
		strings.Replace(live, "true", "false", 1):      false,
		strings.Replace(live, `"iss":"remit",`, "", 1): false,
	} {
		if err := suite.Check(answered("/v1/auth/introspect", `{"token":"t"}`, text)); (err == nil) != right {
			t.Errorf("%s: %v, want right %t", text, err, right)
		}
	}
}

// Code generators make a number without a format a float32, which cannot hold money.
func TestMoneyIsOfDoublePrecision(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Usd", "Overage"} {
		if format := newSuite(t).components[name].Value.Format; format != "double" {
			t.Errorf("%s is of the format %q", name, format)
		}
	}
}

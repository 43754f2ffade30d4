package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"remit/client"
)

// What no scenario of sdk/same_test.go can show: codes of tomorrow, and answers of others than the service.
func TestEveryRefusalIsAProblem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		answer reaction
		want   client.Problem
	}{
		{refusal(403, "a_code_of_tomorrow"), client.Problem{Status: 403, Code: "a_code_of_tomorrow", Detail: "words", RequestID: "r-1"}},
		{reaction{status: 502, body: "<html>"}, client.Problem{Status: 502, Detail: "Bad Gateway"}},
		{reaction{status: 403, body: `{"code":7}`}, client.Problem{Status: 403, Detail: "Forbidden"}},
	} {
		err := aRead(t.Context(), newClient(t, &fake{react: inTurn(test.answer)}, client.Options{}))
		if got, is := errors.AsType[*client.Problem](err); !is || !reflect.DeepEqual(*got, test.want) {
			t.Errorf("%s: found %#v in %v", test.answer.body, got, err)
		}
	}
	err := aRead(t.Context(), newClient(t, &fake{react: inTurn(refusal(403, "budget_exhausted", `"remaining_usd":1,"needed_actions":2`))}, client.Options{}))
	if b, is := errors.AsType[*client.BudgetExhausted](err); !is || b.NeededActions != 2 {
		t.Errorf("%+v in %v", b, err)
	}
}

func TestCredentialsAreNotPrinted(t *testing.T) {
	t.Parallel()
	const secret, key = "rms_secret", "rmk_secret"
	small, edwards := generated(t, client.ES256), generated(t, client.EdDSA)
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
		small, *small, small.Text(), edwards, *edwards, edwards.Text(),
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t"} {
			fmt.Fprintf(&printed, verb+"\n", value)
		}
		log.Info("value", "value", value)
	}
	secrets := []string{"secret", "access-1", "refresh-1", fmt.Sprintf("%x", "secret")}
	for _, own := range []*client.Key{small, edwards} {
		var private struct{ D string }
		noError(t, json.Unmarshal([]byte(own.Text()), &private))
		raw := segment(t, private.D)
		secrets = append(secrets, private.D, fmt.Sprintf("%x", raw), fmt.Sprint(raw)[1:20])
	}
	for _, hidden := range secrets {
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

// A base may have a path, and no id leads to another path.
func TestBaseURLs(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"http://h":                 "http://h",
		"https://h:8443/":          "https://h:8443",
		"https://h/behind/proxy/":  "https://h/behind/proxy",
		"":                         "",
		"ftp://h":                  "",
		"http://":                  "",
		"http://me:rms_secret@h":   "",
		"http://h?x=1":             "",
		"http://h#x":               "",
		"http://me:rms_secret@h:x": "",
	} {
		f, asked := &fake{react: inTurn(fails(io.EOF))}, ""
		remit, err := client.New(base, client.Options{MaxAttempts: 1, HTTPClient: &http.Client{Transport: f}})
		if err == nil {
			want += "/v1/sessions/..%2Fagents%3Fx%23y"
			remit.Organization("k").GetSession(t.Context(), "../agents?x#y")
			asked = f.requests[0].url
		} else if strings.Contains(err.Error(), "rms_secret") {
			t.Errorf("%s: %v", base, err)
		}
		if asked != want || (err == nil) != (want != "") {
			t.Errorf("%s: asked %q, %v", base, asked, err)
		}
	}
}

package client_test

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"remit/client"
)

const (
	oauthPath    = "/oauth2/token"
	metadataPath = "/.well-known/oauth-authorization-server"
	metadata     = `{"issuer":"https://issuer.test","token_endpoint":"https://issuer.test/oauth2/token"}`
)

// describes serves the metadata, and passes all other requests to next.
func describes(next func(n int, r seen) reaction) func(n int, r seen) reaction {
	return func(n int, r seen) reaction {
		if r.path == metadataPath {
			return ok(metadata)
		}
		return next(n, r)
	}
}

func formOf(t *testing.T, r seen) url.Values {
	t.Helper()
	form, err := url.ParseQuery(r.body)
	if err != nil || r.header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		t.Fatalf("%s %s: %v", r.header.Get("Content-Type"), r.body, err)
	}
	return form
}

// sent compares the parameters, but for those that differ from one request to the next.
func sent(t *testing.T, r seen, want string) url.Values {
	t.Helper()
	form := formOf(t, r)
	fixed := url.Values{}
	for name, values := range form {
		fixed[name] = values
		if name == "client_assertion" {
			fixed[name] = []string{"…"}
		}
	}
	if got, _ := url.QueryUnescape(fixed.Encode()); got != want {
		t.Errorf("sends %s\nwant  %s", got, want)
	}
	return form
}

func agentWith(t *testing.T, f *fake, o client.AgentOptions) *client.Agent {
	t.Helper()
	return must(newClient(t, f, client.Options{}).AgentWith("a1", o))(t)
}

func TestWhatATokenIsForIsSent(t *testing.T) {
	t.Parallel()
	secret := client.AgentOptions{Secret: "rms_1", Resource: []string{"https://a.test/x", "urn:b"}}
	f := &fake{react: issues(nil)}
	token(t, agentWith(t, f, secret))
	if body := f.requests[0].body; body != `{"agent_id":"a1","resource":["https://a.test/x","urn:b"],"secret":"rms_1"}` {
		t.Errorf("sends %s", body)
	}
	secret.Scopes = []string{"read", "pay"}
	f = &fake{react: inTurn(pair(1))}
	token(t, agentWith(t, f, secret))
	sent(t, f.requests[0], "client_id=a1&client_secret=rms_1&grant_type=client_credentials&resource=https://a.test/x&resource=urn:b&scope=read pay")
}

// Each attempt signs a new assertion, because the service accepts each once.
func TestAKeySignsAnAssertionForEachAttempt(t *testing.T) {
	t.Parallel()
	for _, a := range []client.Algorithm{client.ES256, client.EdDSA} {
		synctest.Test(t, func(t *testing.T) {
			key := generated(t, a)
			f := &fake{react: describes(inTurn(fails(errReset), refusal(503, "outcome_unknown"), pair(1), pair(2)))}
			agent := agentWith(t, f, client.AgentOptions{Key: string(key.Text()), Scopes: []string{"read"}, Resource: []string{"urn:b"}})
			if access := token(t, agent); access != "access-1" {
				t.Error(access)
			}
			seen := map[string]bool{}
			for _, r := range f.to(oauthPath) {
				form := sent(t, r, "client_assertion=…&client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer&client_id=a1&"+
					"grant_type=client_credentials&resource=urn:b&scope=read")
				var header struct{ Alg, Kid, Typ string }
				var claims struct {
					Iss, Sub, Aud, Jti string
					Iat, Exp           int64
				}
				onlyKey(t, key.JWKS()).verifies(t, form.Get("client_assertion"), &header, &claims)
				if header.Alg != string(a) || header.Kid != key.Thumbprint() || header.Typ != "client-authentication+jwt" ||
					claims.Iss != "a1" || claims.Sub != "a1" || claims.Aud != "https://issuer.test" || len(claims.Jti) != 32 ||
					claims.Exp-claims.Iat != 60 || r.at.Sub(time.Unix(claims.Iat, 0)) >= time.Second {
					t.Errorf("%+v %+v", header, claims)
				}
				seen[claims.Jti] = true
			}
			if len(seen) != 3 || f.count(metadataPath) != 1 {
				t.Errorf("%d assertions, the issuer was asked for %d times", len(seen), f.count(metadataPath))
			}
		})
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	noError(t, os.WriteFile(name, []byte(text), 0o600))
}

func TestAKeyFileIsReadAgainWhenItIsNeeded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agent.jwk")
	f := &fake{react: describes(func(n int, r seen) reaction {
		if r.path == refreshPath {
			return refusal(401, "invalid_refresh_token") // the family was revoked
		}
		return pair(n)
	})}
	agent := agentWith(t, f, client.AgentOptions{KeyFile: file})
	_, err := agent.Token(t.Context())
	unusable, isUnusable := errors.AsType[*client.UnusableCredential](err)
	if !isUnusable || unusable.Source != file || !errors.Is(err, fs.ErrNotExist) || errors.Is(err, client.ErrUnavailable) || len(f.requests) != 0 {
		t.Errorf("without a file: %v, after %d requests", err, len(f.requests))
	}
	for range 2 {
		key := generated(t, client.EdDSA)
		write(t, file, string(key.Text()))
		noError(t, agent.Refresh(t.Context()))
		all := f.to(oauthPath)
		onlyKey(t, key.JWKS()).verifies(t, formOf(t, all[len(all)-1]).Get("client_assertion"), &struct{}{}, &struct{}{})
	}
	write(t, file, "torn")
	if _, is := errors.AsType[*client.UnusableCredential](agent.Refresh(t.Context())); !is {
		t.Error("a torn file is usable")
	}
}

// No refresh token comes for a workload's token: it is presented again, as the platform has renewed it meanwhile.
func TestAWorkloadsTokenIsReadAgainForEachExchange(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	once := ok(`{"access_token":"access","token_type":"Bearer","expires_in":3600,"scope":""}`)
	for name, o := range map[string]client.AgentOptions{
		"file": {AssertionFile: file, Resource: []string{"urn:b"}},
		"function": {Assertion: func(context.Context) (string, error) {
			text, err := os.ReadFile(file)
			return string(text), err
		}, Resource: []string{"urn:b"}},
	} {
		f := &fake{react: inTurn(once)}
		agent := agentWith(t, f, o)
		for _, jwt := range []string{"e30.e30.a", "e30.e30.b"} {
			write(t, file, jwt+"\n")
			noError(t, agent.Refresh(t.Context()))
			sent(t, f.requests[len(f.requests)-1], "assertion="+jwt+"&client_id=a1&grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&resource=urn:b")
		}
		for _, wrong := range []string{"", "no token", "a.b." + strings.Repeat("c", 9000)} {
			write(t, file, wrong)
			err := agent.Refresh(t.Context())
			if _, is := errors.AsType[*client.UnusableCredential](err); !is || len(f.requests) != 2 {
				t.Errorf("%s: %.20q: %v, after %d requests", name, wrong, err, len(f.requests))
			}
		}
	}
}

func TestAnAgentHasOneCredential(t *testing.T) {
	t.Parallel()
	remit := newClient(t, &fake{}, client.Options{})
	for want, o := range map[string]client.AgentOptions{
		"no credential":               {},
		"set one of Secret, KeyFile":  {Secret: "s", KeyFile: "f"},
		"neither a JWK nor PEM":       {Key: "k"},
		"set one of Key, AssertionFi": {Key: "k", AssertionFile: "f"},
	} {
		if _, err := remit.AgentWith("a1", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// oauthRefusal is an error in the form of RFC 6749 §5.2.
func oauthRefusal(status int, code string) reaction {
	return reaction{status: status, body: `{"error":"` + code + `","error_description":"words"}`}
}

// Those that the service gives are in the scenario identity of sdk/same_test.go.
func TestErrorsOfTheTokenEndpointAreTyped(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
		caused := func(status int, code, cause string) reaction {
			return reaction{status: status, body: `{"error":"` + code + `","error_description":"words",` + cause + `}`}
		}
		for _, test := range []struct {
			answer reaction
			is     func(error) bool
			text   string
		}{
			{oauthRefusal(401, "invalid_client"), is(client.ErrUnauthorized), "401 invalid_client: words"},
			{oauthRefusal(400, "invalid_grant"), is(client.ErrUnauthorized), "400 invalid_grant: words"},
			{oauthRefusal(429, "temporarily_unavailable"), is(client.ErrRateLimited), ""},
			{oauthRefusal(503, "temporarily_unavailable"), is(client.ErrUnavailable), ""},
			{refusal(401, "dpop_required"), is(client.ErrDPoPRequired), "DPoP"},
			{caused(400, "unauthorized_client", `"code":"organization_suspended"`), is(client.ErrOrganizationSuspended), "words"},
			{caused(403, "temporarily_unavailable", `"code":"quota_exceeded","quota":"bytes","used":7,"max":8`), func(err error) bool {
				quota, is := errors.AsType[*client.QuotaExceeded](err)
				return is && quota.Quota == "bytes" && quota.Used == 7 && quota.Max == 8
			}, "words"},
			{caused(400, "invalid_scope", `"code":"insufficient_scope","required_scope":"pay"`), func(err error) bool {
				scope, is := errors.AsType[*client.InsufficientScope](err)
				return is && scope.RequiredScope == "pay"
			}, "words"},
			{caused(503, "temporarily_unavailable", `"code":"unavailable"`), is(client.ErrUnavailable), "words"},
			{caused(400, "invalid_grant", `"code":7`), is(client.ErrUnauthorized), "words"},
		} {
			agent := agentWith(t, &fake{react: inTurn(test.answer)}, client.AgentOptions{Secret: "s", Scopes: []string{"read"}})
			if err := second(agent.Token(t.Context())); !test.is(err) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%s: %#v", test.answer.body, err)
			}
		}
	})
}

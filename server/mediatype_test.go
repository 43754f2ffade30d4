package server_test

import (
	"net/http"
	"testing"
)

// withHeaders replaces all values of a header; none removes it.
func withHeaders(name string, values ...string) option {
	return func(h http.Header) {
		h.Del(name)
		for _, value := range values {
			h.Add(name, value)
		}
	}
}

func TestABodyOfAnotherMediaTypeIsRefused(t *testing.T) {
	onEachBodyEndpoint(t, func(c *client, e bodyEndpoint) {
		for _, types := range [][]string{
			{}, {""}, {"text/plain"}, {"text/json"}, {"application/jsonx"}, {"application/json-patch+json"}, {"application"}, {"json"},
			{"application/problem+json"}, {"application/x-www-form-urlencoded"}, {"multipart/form-data; boundary=x"}, {"*/*"},
			{"application/json, text/plain"}, {"text/plain, application/json"}, {"application/json/"}, {"application/json; charset"},
			{"application /json"}, {";application/json"},
		} {
			r := c.send(e, e.valid, withHeaders("Content-Type", types...))
			if r.status != 415 {
				c.t.Errorf("Content-Type %q", types)
			}
			r.refused(415, "unsupported_media_type")
		}
	})
}

// Which of two counts is for each parser to choose, so neither does.
func TestABodyOfTwoMediaTypesIsRefused(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	for _, types := range [][]string{
		{"application/json", "text/plain"}, {"text/plain", "application/json"}, {"application/json", "application/json"},
	} {
		r := api.post("/v1/organizations", fields{"name": "n"}, withHeaders("Content-Type", types...))
		t.Run(types[0]+" and "+types[1], func(t *testing.T) { r.in(t).refused(415, "unsupported_media_type") })
	}
}

func TestAnEncodedBodyIsRefused(t *testing.T) {
	onEachBodyEndpoint(t, func(c *client, e bodyEndpoint) {
		for _, encodings := range [][]string{{"gzip"}, {"identity"}, {"br"}, {"deflate, gzip"}, {"x"}, {"gzip", "identity"}} {
			c.send(e, e.valid, withHeaders("Content-Encoding", encodings...)).refused(415, "unsupported_media_type")
		}
	})
}

func TestJSONIsAcceptedWithAnyParameterAndInAnyCase(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	for _, mediaType := range []string{
		"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", `application/json; charset="utf-8"`,
		"Application/JSON", "application/json ; charset=utf-8",
	} {
		api.post("/v1/organizations", fields{"name": "n"}, withHeaders("Content-Type", mediaType)).is(201)
	}
}

// Media types have no case (RFC 9110 §8.3.1).
func TestAFormIsAcceptedWithAnyParameterAndInAnyCase(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	d := api.newDelegation()
	f := newForeignIssuer(t, "https://idp.example", "ES256")
	d.trustKey(f, object{"sub": "job"})
	for name, send := range map[string]func(as option) *response{
		"client_credentials": func(as option) *response {
			return d.postForm("/oauth2/token", byPost(d.agent, "grant_type", "client_credentials"), as)
		},
		"refresh_token": func(as option) *response {
			return d.postForm("/oauth2/token", byPost(d.agent, "grant_type", "refresh_token", "refresh_token", d.exchange().refresh), as)
		},
		"jwt-bearer": func(as option) *response {
			return d.postForm("/oauth2/token", byAssertion(d.agent.id, f.sign(object{"sub": "job"})), as)
		},
		"token-exchange": func(as option) *response {
			return d.postForm("/oauth2/token", form("grant_type", exchangeGrant, "subject_token", d.planner.access,
				"subject_token_type", accessTokenType, "session_id", d.child), as)
		},
		"introspection": func(as option) *response { return d.postForm("/oauth2/introspect", byPost(d.agent, "token", "x"), as) },
		"revocation":    func(as option) *response { return d.postForm("/oauth2/revoke", byPost(d.agent, "token", "x"), as) },
	} {
		for _, mediaType := range []string{
			"application/x-www-form-urlencoded", "Application/X-WWW-Form-Urlencoded", "APPLICATION/X-WWW-FORM-URLENCODED; charset=utf-8",
			"application/x-www-form-urlencoded ;charset=UTF-8",
		} {
			if r := send(withHeaders("Content-Type", mediaType)); r.status != 200 {
				t.Errorf("%s as %s: %d %s", name, mediaType, r.status, r.body)
			}
		}
	}
}

// Without a body there is nothing whose type could be wrong: curl -X POST sends neither or both.
func TestAnAbsentBodyNeedsNoMediaType(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	id := w.newSession(nil)
	for _, types := range [][]string{{}, {"application/json"}, {"application/x-www-form-urlencoded"}} {
		as := both(asKey(w.key), withHeaders("Content-Type", types...))
		w.post("/sessions/"+id+"/actions", nil, as).invalid("")
		w.post("/sessions/"+id+"/end", nil, as).is(200)
		id = w.newSession(nil)
	}
}

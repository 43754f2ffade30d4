package server_test

import (
	"fmt"
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

func TestABodyOfAnotherMediaTypeAndAnEncodedBodyAreRefused(t *testing.T) {
	onEachBodyEndpoint(t, func(c *client, e bodyEndpoint) {
		for name, wrong := range map[string][][]string{
			"Content-Type": {
				{}, {""}, {"text/plain"}, {"text/json"}, {"application/jsonx"}, {"application/json-patch+json"}, {"application"}, {"json"},
				{"application/problem+json"}, {"application/x-www-form-urlencoded"}, {"multipart/form-data; boundary=x"}, {"*/*"},
				{"application/json, text/plain"}, {"text/plain, application/json"}, {"application/json/"}, {"application/json; charset"},
				{"application /json"}, {";application/json"},
			},
			"Content-Encoding": {{"gzip"}, {"identity"}, {"br"}, {"deflate, gzip"}, {"x"}, {"gzip", "identity"}},
		} {
			for _, values := range wrong {
				r := c.send(e, e.valid, withHeaders(name, values...))
				r.what += fmt.Sprintf(" with the %s %q", name, values)
				r.refused(415, "unsupported_media_type")
			}
		}
	})
}

// Media types have no case (RFC 9110 §8.3.1).
func TestAMediaTypeIsAcceptedWithAnyParameterAndInAnyCase(t *testing.T) {
	t.Parallel()
	w := onMiniredis(t, setup{}).newTenant()
	for _, as := range []string{"%s", "%s; charset=utf-8", "%s;charset=UTF-8", `%s; charset="utf-8"`, "%s ; charset=utf-8"} {
		for json, form := range map[string]string{
			"application/json": "application/x-www-form-urlencoded", "Application/JSON": "APPLICATION/X-WWW-Form-Urlencoded",
		} {
			w.post("/v1/organizations", fields{"name": "n"}, withHeaders("Content-Type", fmt.Sprintf(as, json))).is(201)
			for path, of := range map[string][]string{
				"/oauth2/token": {"grant_type", "client_credentials"}, "/oauth2/introspect": {"token", "x"}, "/oauth2/revoke": {"token", "x"},
			} {
				w.postForm(path, byPost(w.agent, of...), withHeaders("Content-Type", fmt.Sprintf(as, form))).is(200)
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

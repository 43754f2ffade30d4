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

// Without a body there is nothing whose type could be wrong: curl -X POST sends neither or both.
func TestAnAbsentBodyNeedsNoMediaType(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	id := w.newSession(nil)
	for _, types := range [][]string{{}, {"application/json"}, {"application/x-www-form-urlencoded"}} {
		as := both(asKey(w.key), withHeaders("Content-Type", types...))
		w.post("/sessions/"+id+"/actions", nil, as).is(200)
		w.post("/sessions/"+id+"/end", nil, as).is(200)
		id = w.newSession(nil)
	}
}

package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// response is an answer, read whole.
type response struct {
	t      *testing.T
	what   string // the request
	status int
	header http.Header
	body   []byte
}

// in returns the answer for a subtest.
func (r *response) in(t *testing.T) *response {
	moved := *r
	moved.t = t
	return &moved
}

var credential = regexp.MustCompile(`rm(?:[ksr]|sk)_[A-Za-z0-9_-]{40}|eyJ[A-Za-z0-9_-]+\.eyJ`)

// checkCommonRules holds an answer to DESIGN §2.1: what every response has.
func (r *response) checkCommonRules(method string) error {
	broken := func(rule string) error {
		return fmt.Errorf("%s (status %d, headers %v, body %s)", rule, r.status, r.header, r.body)
	}
	switch {
	case len(r.header["X-Request-Id"]) != 1 || r.header.Get("X-Request-Id") == "":
		return broken("not one X-Request-Id")
	case r.header.Get("X-Content-Type-Options") != "nosniff":
		return broken("no nosniff")
	case r.header.Get("Server") != "":
		return broken("names its software")
	case credential.Match(r.body) && r.header.Get("Cache-Control") != "no-store":
		return broken("a credential without no-store")
	case credential.MatchString(fmt.Sprint(r.header)):
		return broken("a credential in a header")
	case len(r.body) > 0 && !json.Valid(r.body) && !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") && !r.isNoJSON():
		return broken("not JSON")
	case r.status >= 400 && len(r.body) == 0 && method != http.MethodHead:
		return broken("a refusal without a body")
	}
	return nil
}

// isNoJSON says whether this is one of the answers of another kind: usage as CSV, and a checkpoint, a JWS.
func (r *response) isNoJSON() bool {
	kind := r.header.Get("Content-Type")
	return r.status == http.StatusOK && (strings.HasPrefix(r.what, "GET /v1/usage?") && strings.HasPrefix(kind, "text/csv;") ||
		r.what == "GET /v1/events/checkpoint" && kind == "application/jose")
}

// is fails the test unless the answer has this status.
func (r *response) is(status int) *response {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%s: %d %s, want %d", r.what, r.status, r.body, status)
	}
	return r
}

// problemMembers are those of every problem, membersOf those that some have beside them.
var (
	problemMembers = []string{"type", "title", "status", "detail", "code", "request_id"}
	membersOf      = map[string][]string{
		"agent_suspended":       {"suspended_at"},
		"session_suspended":     {"suspended_at"},
		"invalid_request":       {"errors"},
		"invalid_target":        {"errors"},
		"session_not_active":    {"session_status"},
		"insufficient_role":     {"required_role"},
		"insufficient_scope":    {"required_scope"},
		"session_limit_reached": append(limitMembers, "needed_actions", "needed_value_usd"),
		"limit_below_usage":     limitMembers,
		"budget_exhausted":      {"remaining_usd", "resets_at", "needed_actions", "needed_value_usd"},
		"quota_exceeded":        {"quota", "used", "max"},
		"agent_limit_reached":   {"limit", "resets_at", "needed_actions", "needed_value_usd"},
		"rate_limited":          {"limit", "retry_after_seconds"},

		"transaction_not_pending":    {"transaction_status"},
		"transaction_not_reversible": {"transaction_status"},
	}
	limitMembers = []string{
		"limit", "action_count", "max_actions", "value_used_usd", "max_value_usd", "value_held_usd", "remaining_actions",
		"remaining_value_usd", "expires_at", "parent_session_id",
	}
)

// refused fails the test unless the answer is a problem with this status and code, in the form of RFC 9457.
func (r *response) refused(status int, code string) *response {
	r.t.Helper()
	r.is(status)
	if kind := r.header.Get("Content-Type"); kind != "application/problem+json" {
		r.t.Errorf("%s: Content-Type %q of a problem", r.what, kind)
	}
	p := r.object()
	if p["code"] != code {
		r.t.Fatalf("%s: code %v, want %s: %s", r.what, p["code"], code, r.body)
	}
	if p["type"] != "urn:remit:problem:"+code || p["status"] != num(status) || p["title"] == "" || p["detail"] == "" ||
		p["request_id"] != r.header.Get("X-Request-Id") {
		r.t.Errorf("%s: a problem of another form: %s (request id %s)", r.what, r.body, r.header.Get("X-Request-Id"))
	}
	if header := fmt.Sprint(r.header["Www-Authenticate"], r.header["Retry-After"]); header != "[] []" && slices.Contains([]int{400, 404, 405}, status) &&
		!strings.Contains(code, "dpop") {
		r.t.Errorf("%s: %d with a challenge or a time to come again: %s", r.what, status, header)
	}
	for member := range p {
		if !slices.Contains(problemMembers, member) && !slices.Contains(membersOf[code], member) {
			r.t.Errorf("%s: a problem with a member %s: %s", r.what, member, r.body)
		}
	}
	return r
}

// invalid fails the test unless the answer is 400 invalid_request that names exactly these fields, in any order.
func (r *response) invalid(names ...string) *response {
	r.t.Helper()
	r.refused(http.StatusBadRequest, "invalid_request")
	named := map[string]bool{}
	errors, _ := r.object()["errors"].([]any)
	for _, e := range errors {
		entry, _ := e.(map[string]any)
		name, _ := entry["field"].(string)
		if message, _ := entry["message"].(string); message == "" {
			r.t.Errorf("%s: nothing is said of field %q: %s", r.what, name, r.body)
		}
		named[name] = true
	}
	ok := len(named) == len(names)
	for _, name := range names {
		ok = ok && named[name]
	}
	if !ok {
		r.t.Errorf("%s: names %v, want %q: %s", r.what, named, names, r.body)
	}
	return r
}

// object returns the body, which must be a JSON object.
func (r *response) object() fields {
	r.t.Helper()
	var object fields
	r.decode(&object)
	return object
}

// array returns the body, which must be a JSON array of objects.
func (r *response) array() []fields {
	r.t.Helper()
	var array []fields
	if r.decode(&array); array == nil {
		r.t.Fatalf("%s: not an array: %s", r.what, r.body)
	}
	return array
}

func (r *response) decode(into any) {
	r.t.Helper()
	if err := decodeInto(r.body, into); err != nil {
		r.t.Fatalf("%s: %v in %q", r.what, err, r.body)
	}
}

// decodeInto keeps numbers as their digits.
func decodeInto(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// text returns a field that must be a string.
func (r *response) text(field string) string {
	r.t.Helper()
	text, ok := r.object()[field].(string)
	if !ok {
		r.t.Fatalf("%s: no text %s in %s", r.what, field, r.body)
	}
	return text
}

// detail returns what a problem says to people.
func (r *response) detail() string {
	r.t.Helper()
	return r.text("detail")
}

// exactly fails the test unless the body is an object of exactly these fields; see differences.
func (r *response) exactly(want fields) *response {
	r.t.Helper()
	if found := differences(r.object(), want); found != "" {
		r.t.Errorf("%s: %s in %s", r.what, found, r.body)
	}
	return r
}

// has fails the test unless the body is an object with these fields, and perhaps others.
func (r *response) has(want fields) *response {
	r.t.Helper()
	some := fields{}
	for name, value := range r.object() {
		if _, wanted := want[name]; wanted {
			some[name] = value
		}
	}
	if found := differences(some, want); found != "" {
		r.t.Errorf("%s: %s in %s", r.what, found, r.body)
	}
	return r
}

// lacks fails the test if the body has this field.
func (r *response) lacks(field string) {
	r.t.Helper()
	if _, has := r.object()[field]; has {
		r.t.Errorf("%s: there is %s in %s", r.what, field, r.body)
	}
}

// ids returns the ids in a list, in its order.
func (r *response) ids() []string {
	r.t.Helper()
	ids := []string{}
	for _, object := range r.array() {
		ids = append(ids, fmt.Sprint(object["id"]))
	}
	return ids
}

// withoutRequestID is a response to compare with others that must be identical.
func (r *response) withoutRequestID() string {
	id := r.header.Get("X-Request-Id")
	return fmt.Sprint(r.status, r.header["Content-Type"], r.header["Www-Authenticate"], r.header["Cache-Control"],
		strings.ReplaceAll(string(r.body), id, "<request id>"))
}

// wantSameAnswer fails the test unless two responses differ only in the request id.
func wantSameAnswer(t *testing.T, a, b *response) {
	t.Helper()
	if a.withoutRequestID() != b.withoutRequestID() {
		t.Errorf("told apart:\n%s: %s\n%s: %s", a.what, a.withoutRequestID(), b.what, b.withoutRequestID())
	}
}

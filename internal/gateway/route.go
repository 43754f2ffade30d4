package gateway

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"remit/client/wire"
)

// kind is what a route costs.
type kind int

const (
	refused kind = iota // nothing bounds its cost, or what it reaches
	free                // the provider charges nothing for it
	priced              // it is held for and settled
	own                 // free for the only organization of an upstream; refused where others share what the provider keeps
)

// route is what a path of a provider's API is to the gateway.
type route struct {
	method  string
	pattern string // below the base URL, without v1; {id} stands for one or more segments
	kind    kind
	format  wire.Format // of a body that is read
	query   []string    // names that may stand in it
	reason  string      // of a refused one
}

const (
	unbounded = "nothing bounds what it can cost"
	kept      = "it reaches what is kept at the provider, which every caller of this upstream shares"
	later     = "its cost is not known when it is answered"
)

// listed are the parameters of lists.
var listed = []string{"after", "before", "limit", "order"}

// routes is the only table of what passes. What it does not have is refused. No method is free by kind: each route stands here.
var routes = map[protocol][]route{
	openAI: {
		{method: "POST", pattern: "chat/completions", kind: priced, format: wire.ChatCompletions, query: []string{"api-version"}},
		{method: "POST", pattern: "responses", kind: priced, format: wire.Responses, query: []string{"api-version"}},
		{method: "POST", pattern: "embeddings", kind: priced, format: wire.Embeddings, query: []string{"api-version"}},
		{method: "GET", pattern: "models", kind: free, query: []string{"api-version"}},
		{method: "GET", pattern: "models/{id}", kind: free, query: []string{"api-version"}},
		{method: "POST", pattern: "responses/input_tokens", kind: free, format: wire.Responses, query: []string{"api-version"}},

		{method: "GET", pattern: "responses", reason: "a WebSocket has no bound of what it can cost; use POST"},
		{pattern: "responses/compact", reason: unbounded},
		{method: "POST", pattern: "responses/{id}", reason: "nothing that it does is metered"},
		{method: "GET", pattern: "responses/{id}", kind: own, query: listed},
		{method: "DELETE", pattern: "responses/{id}", kind: own},
		{method: "POST", pattern: "conversations", kind: own},
		{method: "POST", pattern: "conversations/{id}", kind: own},
		{method: "GET", pattern: "conversations/{id}", kind: own, query: listed},
		{method: "DELETE", pattern: "conversations/{id}", kind: own},
		{pattern: "chat/completions/{id}", reason: kept},
		{method: "GET", pattern: "chat/completions", reason: kept},
		{pattern: "completions", reason: "it is not metered; use chat/completions or responses"},
		{pattern: "batches", reason: later},
		{pattern: "batches/{id}", reason: later},
		{pattern: "files", reason: kept},
		{pattern: "files/{id}", reason: kept},
		{pattern: "uploads", reason: kept},
		{pattern: "uploads/{id}", reason: kept},
		{pattern: "vector_stores", reason: kept},
		{pattern: "vector_stores/{id}", reason: kept},
		{pattern: "containers", reason: kept},
		{pattern: "containers/{id}", reason: kept},
		{pattern: "assistants", reason: kept},
		{pattern: "assistants/{id}", reason: kept},
		{pattern: "threads", reason: kept},
		{pattern: "threads/{id}", reason: kept},
		{pattern: "evals", reason: later},
		{pattern: "evals/{id}", reason: later},
		{pattern: "fine_tuning/{id}", reason: unbounded},
		{pattern: "audio/{id}", reason: "audio has no price by tokens that the gateway can bound"},
		{pattern: "images/{id}", reason: "images have no price by tokens that the gateway can bound"},
		{pattern: "videos", reason: unbounded},
		{pattern: "videos/{id}", reason: unbounded},
		{pattern: "moderations", reason: "it is not metered"},
		{pattern: "realtime", reason: unbounded},
		{pattern: "realtime/{id}", reason: unbounded},
		{pattern: "organization/{id}", reason: "it administers the provider's account"},
	},
	anthropic: {
		{method: "POST", pattern: "messages", kind: priced, format: wire.Messages, query: []string{"beta"}},
		{method: "POST", pattern: "messages/count_tokens", kind: free, format: wire.Messages, query: []string{"beta"}},
		{method: "GET", pattern: "models", kind: free, query: []string{"after_id", "before_id", "beta", "limit"}},
		{method: "GET", pattern: "models/{id}", kind: free, query: []string{"beta"}},

		{pattern: "messages/batches", reason: later},
		{pattern: "messages/batches/{id}", reason: later},
		{pattern: "complete", reason: "it is not metered; use messages"},
		{pattern: "files", reason: kept},
		{pattern: "files/{id}", reason: kept},
		{pattern: "skills", reason: kept},
		{pattern: "skills/{id}", reason: kept},
		{pattern: "organizations/{id}", reason: "it administers the provider's account"},
	},
}

// segments is what may stand for {id}. It has no dots alone, no empty segments and nothing encoded, so a path means the same to every server.
var segments = regexp.MustCompile(`^[A-Za-z0-9_:@~-][A-Za-z0-9._:@~-]*(/[A-Za-z0-9_:@~-][A-Za-z0-9._:@~-]*)*$`)

// matches reports whether a path below the base URL is the route's.
func (r *route) matches(path string) bool {
	before, isOpen := strings.CutSuffix(r.pattern, "{id}")
	if !isOpen {
		return path == r.pattern
	}
	rest, below := strings.CutPrefix(path, before)
	return below && segments.MatchString(rest)
}

// target is where a request goes.
type target struct {
	upstream *upstream
	route    *route
	path     string // below the base URL
}

// find returns where a request goes. A refusal names the upstream if there is one, because its protocol says how it is written.
func (s *settings) find(method, path, query string) (target, *refusal) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	u := s.upstreams[name]
	if u == nil || !strings.HasPrefix(path, "/") {
		return target{}, noUpstream()
	}
	t := target{upstream: u, path: rest}
	if strings.HasSuffix(u.Base.Path, "/v1") { // what follows the base URL of the provider's client, or of one that adds v1 itself
		t.path = strings.TrimPrefix(rest, "v1/")
	}
	bare := strings.TrimPrefix(t.path, "v1/")
	isOther := false
	for i := range routes[u.Protocol] {
		r := &routes[u.Protocol][i]
		switch {
		case !r.matches(bare):
		case r.method != "" && r.method != method:
			isOther = true
		case r.kind == refused:
			return t, refuse(http.StatusForbidden, "route_refused", r.pattern+" is refused: "+r.reason)
		case r.kind == own && u.isShared():
			return t, refuse(http.StatusForbidden, "route_refused", r.pattern+" is refused: "+kept)
		default:
			t.route = r
			return t, r.checkQuery(query)
		}
	}
	if isOther {
		return t, refuse(http.StatusMethodNotAllowed, "method_not_allowed", method+" is not allowed here")
	}
	return t, refuse(http.StatusNotFound, "route_refused", "the gateway knows no price of this path, so it refuses it")
}

var queryPair = regexp.MustCompile(`^([a-z_-]+)=([A-Za-z0-9._-]*)$`)

// checkQuery refuses what could make a request mean something else.
func (r *route) checkQuery(query string) *refusal {
	if query == "" {
		return nil
	}
	var seen []string
	for pair := range strings.SplitSeq(query, "&") {
		parts := queryPair.FindStringSubmatch(pair)
		if parts == nil || !slices.Contains(r.query, parts[1]) || slices.Contains(seen, parts[1]) {
			return refuse(http.StatusBadRequest, "invalid_request", "the query has a parameter that the gateway does not know, or one twice")
		}
		seen = append(seen, parts[1])
	}
	return nil
}

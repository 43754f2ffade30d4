package gateway

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/uuid"
)

// newSettings has an upstream of each protocol for one organization, and shared ones for two.
func newSettings(base string) *settings {
	s := &settings{upstreams: map[string]*upstream{}}
	for name, protocol := range map[string]protocol{"openai": openAI, "anthropic": anthropic, "openai-shared": openAI, "anthropic-shared": anthropic} {
		u := &upstream{upstreamConfig: upstreamConfig{Name: name, Protocol: protocol, Base: &url.URL{Scheme: "https", Host: "provider", Path: base}}}
		u.organizations = map[uuid.UUID]bool{{1}: true}
		if len(name) > len("anthropic") {
			u.organizations[uuid.UUID{2}] = true
		}
		s.upstreams[name] = u
	}
	return s
}

func TestARoutePassesOnlyIfTheTableHasIt(t *testing.T) {
	t.Parallel()
	s := newSettings("/v1")
	for _, test := range []struct {
		method, path, query string
		status              int // 0: it passes
		kind                kind
		to                  string
	}{
		{"POST", "/openai/chat/completions", "", 0, priced, "chat/completions"},
		{"POST", "/openai/v1/chat/completions", "", 0, priced, "chat/completions"},
		{"POST", "/openai/v1/v1/chat/completions", "", 0, priced, "v1/chat/completions"},
		{"POST", "/openai/responses", "api-version=2025-04-01-preview", 0, priced, "responses"},
		{"POST", "/openai/embeddings", "", 0, priced, "embeddings"},
		{"GET", "/openai/models", "", 0, free, "models"},
		{"GET", "/openai/models/ft:gpt-4.1:acme::id", "", 0, free, "models/ft:gpt-4.1:acme::id"},
		{"GET", "/openai/models/openai/gpt-5", "", 0, free, "models/openai/gpt-5"},
		{"POST", "/openai/responses/input_tokens", "", 0, free, "responses/input_tokens"},
		{"POST", "/anthropic/v1/messages", "beta=true", 0, priced, "messages"},
		{"POST", "/anthropic/v1/messages/count_tokens", "", 0, free, "messages/count_tokens"},
		{"GET", "/anthropic/v1/models", "limit=20&after_id=x", 0, free, "models"},
		{"GET", "/openai/responses/resp_1", "", 0, own, "responses/resp_1"},
		{"DELETE", "/openai/v1/responses/resp_1", "", 0, own, "responses/resp_1"},

		{"GET", "/openai-shared/responses/resp_1", "", 403, 0, ""},
		{"DELETE", "/openai-shared/responses/resp_1", "", 403, 0, ""},
		{"POST", "/openai-shared/conversations", "", 403, 0, ""},
		{"GET", "/openai-shared/conversations/conv_1", "", 403, 0, ""},
		{"POST", "/openai-shared/conversations/conv_1", "", 403, 0, ""},
		{"DELETE", "/openai-shared/conversations/conv_1", "", 403, 0, ""},
		{"POST", "/openai/responses/resp_1/cancel", "", 403, 0, ""},
		{"GET", "/openai/responses", "", 403, 0, ""},
		{"POST", "/openai/batches", "", 403, 0, ""},
		{"POST", "/openai/files", "", 403, 0, ""},
		{"POST", "/openai/audio/speech", "", 403, 0, ""},
		{"POST", "/openai/images/generations", "", 403, 0, ""},
		{"GET", "/openai/realtime", "", 403, 0, ""},
		{"POST", "/openai/completions", "", 403, 0, ""},
		{"POST", "/anthropic/v1/messages/batches", "", 403, 0, ""},
		{"POST", "/anthropic/v1/files", "", 403, 0, ""},
		{"POST", "/anthropic/v1/complete", "", 403, 0, ""},
		{"GET", "/openai/chat/completions/x", "", 403, 0, ""},

		{"GET", "/openai/embeddings", "", 405, 0, ""},
		{"PUT", "/anthropic/v1/messages", "", 405, 0, ""},
		{"DELETE", "/openai/models/mine", "", 405, 0, ""},
		{"HEAD", "/openai/models", "", 405, 0, ""},
		{"POST", "/anthropic/v1/chat/completions", "", 404, 0, ""},
		{"POST", "/openai/messages", "", 404, 0, ""},
		{"POST", "/openai/", "", 404, 0, ""},
		{"POST", "/openai", "", 404, 0, ""},
		{"POST", "/", "", 404, 0, ""},
		{"POST", "*", "", 404, 0, ""},
		{"POST", "/unknown/chat/completions", "", 404, 0, ""},
		{"POST", "/openai//chat/completions", "", 404, 0, ""},
		{"POST", "/openai/chat/completions/", "", 404, 0, ""},
		{"POST", "/openai/chat%2Fcompletions", "", 404, 0, ""},
		{"POST", "/openai/../openai/chat/completions", "", 404, 0, ""},
		{"GET", "/openai/models/..", "", 404, 0, ""},
		{"GET", "/openai/models/../files", "", 404, 0, ""},
		{"GET", "/openai/models/a/./b", "", 404, 0, ""},
		{"GET", "/openai/models/a%2Fb", "", 404, 0, ""},

		{"POST", "/openai/chat/completions", "key=x", 400, 0, ""},
		{"POST", "/openai/chat/completions", "api-version=1&api-version=2", 400, 0, ""},
		{"POST", "/anthropic/v1/messages", "beta=%74rue", 400, 0, ""},
		{"GET", "/openai/responses/resp_1", "stream=true", 400, 0, ""},
	} {
		got, refused := s.find(test.method, test.path, test.query)
		switch {
		case test.status != 0 && (refused == nil || refused.status != test.status):
			t.Errorf("%s %s?%s: %v", test.method, test.path, test.query, refused)
		case test.status == 0 && (refused != nil || got.route.kind != test.kind || got.path != test.to):
			t.Errorf("%s %s?%s: %v, %+v", test.method, test.path, test.query, refused, got)
		}
	}
	if got, refused := newSettings("").find("POST", "/openai/v1/chat/completions", ""); refused != nil || got.path != "v1/chat/completions" {
		t.Errorf("a base URL without v1: %v %+v", refused, got)
	}
}

// Whatever of a provider's API the table does not have is refused, by every method.
func TestEveryRouteThatPassesIsPricedOrListedAsFree(t *testing.T) {
	t.Parallel()
	for protocol, all := range routes {
		for _, r := range all {
			switch {
			case r.kind == refused && r.reason == "", r.kind != refused && (r.reason != "" || r.method == ""):
				t.Errorf("%s %s has no reason or no method", protocol, r.pattern)
			case r.kind == priced && (r.format == nil || r.method != http.MethodPost):
				t.Errorf("%s %s is priced and cannot be read", protocol, r.pattern)
			}
		}
	}
}

func TestPlacesAreSharedFairly(t *testing.T) {
	t.Parallel()
	p := &places{held: map[uuid.UUID]int{}}
	first, second := uuid.UUID{1}, uuid.UUID{2}
	take := func(of uuid.UUID, most, mostOfOne int) (taken int) {
		for p.acquire(of, most, mostOfOne) == nil {
			taken++
		}
		return taken
	}
	if n := take(first, 16, 12); n != 12 {
		t.Errorf("one organization has %d of 16 places, and may have 12", n)
	}
	if n := take(second, 16, 12); n != 4 {
		t.Errorf("the other gets %d", n)
	}
	for range 6 {
		p.release(first)
	}
	if a, b := take(second, 16, 12), take(first, 16, 12); a != 4 || b != 2 { // the last two places are for who has less than half
		t.Errorf("after six are free the second gets %d, and the first %d", a, b)
	}
	for range 8 {
		p.release(first)
		p.release(second)
	}
	if p.len() != 0 || len(p.held) != 0 {
		t.Errorf("%d are left", p.len())
	}
}

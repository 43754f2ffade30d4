package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"remit/test/fakeprovider"
	"remit/test/redistest"
)

// seen keeps what a stranger to a call could read, and fails if there is a secret in it.
type seen struct {
	t       *testing.T
	secrets []string
}

func (s seen) in(what, text string) {
	s.t.Helper()
	for _, secret := range s.secrets {
		if at := strings.Index(text, secret); at >= 0 {
			s.t.Errorf("%s has %q: %s", what, secret, text[max(at-200, 0):min(at+100, len(text))])
		}
	}
}

func TestNeitherKeysNorPromptsAreSeenAnywhereElse(t *testing.T) {
	t.Parallel()
	spans := redistest.NewSpanRecorder()
	w := &world{provider: new(fakeprovider.Provider)}
	upstream := httptest.NewServer(w.provider)
	t.Cleanup(upstream.Close)
	w.base = upstream.URL
	w.start(t, func() string { return w.config("", `["*"]`) }, func(g *Gateway) { g.tracer = spans.Tracer })
	a := w.rich()
	key := a.key()
	const word = "🦉" // of the provider's answers
	everywhere, shown := seen{t, []string{providerKey, prompt, word, a.token, key}}, seen{t, []string{providerKey, a.token, key}}
	answered := "" // all answers
	ask := func(r *http.Request) {
		got := a.do(r)
		answered += got.body
		everywhere.in("a header", fmt.Sprint(got.Header, got.Trailer))
		shown.in("an answer", got.body)
		if got.StatusCode >= 400 {
			everywhere.in("a refusal", got.body)
		}
	}
	for path := range formats {
		for _, fake := range []string{"seed=1", "seed=2", "seed=3", "seed=4", "seed=5", "seed=6", "error=429", "error=504", "error=midway", "cut=midway", "usage=missing", "no such behaviour"} {
			ask(a.request("POST", path, bodyFor(path, `,"stream":true`), "X-Fake", fake))
		}
		for _, body := range []string{
			`{"model":"none","messages":[{"content":"` + prompt + `"}]}`, `{"` + prompt + `":`, prompt, bodyFor(path, `,"tools":[{"type":"web_search"}]`),
			bodyFor(path, `,"n":"`+prompt+`"`), bodyFor(path, `,"max_tokens":999999999,"max_output_tokens":999999999`),
		} {
			ask(a.request("POST", path, body, "Authorization", "Bearer "+key, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
		}
		ask(a.request("POST", path+"?"+prompt, bodyFor(path, "")))
		ask(a.request("POST", path+"/"+prompt, bodyFor(path, ""), "X-"+prompt, prompt))
	}
	for _, path := range []string{"/openai/models", "/anthropic/v1/models/plain", "/openai/files/" + prompt, "/" + prompt} {
		ask(a.request("GET", path, ""))
	}
	ask(a.request("POST", "/anthropic/v1/messages/count_tokens", bodyFor(messagesPath, "")))
	for _, wrong := range []string{providerKey, "rmk_" + prompt, "rmsk_" + prompt, prompt + ".b.c"} {
		ask(a.request("POST", chatPath, bodyFor(chatPath, ""), "Authorization", "Bearer "+wrong))
	}
	for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
		got := a.do(a.request("GET", path, ""))
		everywhere.in(path, got.body)
	}
	if !strings.Contains(answered, word) {
		t.Errorf("no answer has %s, so it was sought in vain", word)
	}
	everywhere.in("the log", w.logs.String())
	everywhere.in("Redis", w.redis.Dump())
	for _, span := range spans.Ended() {
		everywhere.in("a trace", fmt.Sprint(span.Name(), span.Attributes(), span.Status(), span.Events()))
	}
	if !strings.Contains(w.logs.String(), "settled_by=usage") || !strings.Contains(w.logs.String(), "model=plain") || len(spans.Ended()) == 0 {
		t.Errorf("the access log or the trace lacks calls: %s", w.logs)
	}
}

func TestNoPrintOfTheSettingsHasAKey(t *testing.T) {
	t.Parallel()
	s := must(readSettings(newFolder(t, goodConfig)))(t)
	u := s.upstreams["openai"]
	for _, value := range []any{s, *s, s.config, s.upstreams, u, *u, []*upstream{u}, map[string]upstream{"x": *u}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			seen{t, []string{providerKey, fmt.Sprintf("%x", providerKey)}}.in(verb, fmt.Sprintf(verb, value))
		}
		text, err := json.Marshal(value)
		if err == nil {
			seen{t, []string{providerKey}}.in("JSON", string(text))
		}
	}
}

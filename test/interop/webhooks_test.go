package interop

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

type notified struct {
	Secrets []string          `json:"secrets"` // that must verify it
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// receiver is a webhook's receiver, with the requests that it was sent.
type receiver struct {
	url      string
	notified chan notified
}

func newReceiver(t *testing.T) receiver {
	t.Helper()
	r := receiver{notified: make(chan notified, 100)}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		got := notified{Headers: map[string]string{}, Body: string(body)}
		for _, name := range []string{standardwebhooks.HeaderWebhookID, standardwebhooks.HeaderWebhookTimestamp, standardwebhooks.HeaderWebhookSignature} {
			got.Headers[name] = request.Header.Get(name)
		}
		r.notified <- got
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// await returns the next request, which must tell of this type, and verifies it with each of the secrets.
func (r receiver) await(t *testing.T, eventType string, secrets ...string) notified {
	t.Helper()
	select {
	case got := <-r.notified:
		var body struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(got.Body), &body); err != nil || body.Type != eventType {
			t.Fatalf("notified %s, want %s", got.Body, eventType)
		}
		got.Secrets = secrets
		got.verify(t)
		return got
	case <-time.After(30 * time.Second):
		t.Fatalf("not notified of %s", eventType)
	}
	return notified{}
}

// verify checks the request with the library for Go.
func (r notified) verify(t *testing.T) {
	t.Helper()
	header := http.Header{}
	for name, value := range r.Headers {
		header.Set(name, value)
	}
	for _, secret := range r.Secrets {
		receiver := must(standardwebhooks.NewWebhook(secret))(t)
		if err := receiver.Verify([]byte(r.Body), header); err != nil {
			t.Errorf("%s: %v", r.Body, err)
		}
		if err := receiver.Verify([]byte(r.Body+" "), header); err == nil {
			t.Errorf("verified, though changed: %s", r.Body)
		}
	}
}

// The libraries of Standard Webhooks for Go and JavaScript verify what a service sends: the test of a new webhook, a change, a rolled back
// transaction, and while a replaced secret is still valid.
func TestTheLibrariesOfStandardWebhooksVerifyWebhooks(t *testing.T) {
	t.Parallel()
	o, r := newOrganization(t, startService(t, "--webhook-allow-private")), newReceiver(t)
	var hook struct{ ID, Secret string }
	types := []string{"agent.created", "agent.revoked", "transaction.rolled_back"}
	o.call(t, http.MethodPost, "/v1/webhooks", map[string]any{"url": r.url, "types": types}, &hook)
	path := "/v1/webhooks/" + hook.ID
	got := []notified{r.await(t, "webhook.test", hook.Secret)}
	scout := o.newAgent(t, "read")
	got = append(got, r.await(t, "agent.created", hook.Secret))
	var begun struct{ ID string }
	booking := map[string]any{"action_type": "book", "pre_state": map[string]any{"seats": []any{3, "4a"}}}
	o.service.call(t, http.MethodPost, "/v1/transactions", bearing(o.accessToken(t, scout), ""), booking, &begun)
	o.call(t, http.MethodPost, "/v1/transactions/"+begun.ID+"/rollback", map[string]any{}, &struct{}{})
	back := r.await(t, "transaction.rolled_back", hook.Secret)
	if !bytes.Contains([]byte(back.Body), []byte(`"pre_state":{"seats":[3,"4a"]}`)) {
		t.Errorf("a receiver cannot compensate with %s", back.Body)
	}
	var rotated struct{ Secret string }
	o.call(t, http.MethodPost, path+"/rotate", map[string]any{}, &rotated)
	o.revoke(t, scout)
	got = append(got, back, r.await(t, "agent.revoked", rotated.Secret, hook.Secret))
	input := must(json.Marshal(got))(t)
	runNode(t, nil, string(input), "--test-reporter=spec", "webhooks.test.mjs")
}

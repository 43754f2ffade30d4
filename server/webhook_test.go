package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

const hookURL = "https://example.com/remit"

func TestAWebhookIsCreatedReadChangedAndDeleted(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there, key := w.through(api.another(t)), asKey(w.key)
		created := w.post("/v1/webhooks", fields{"url": hookURL, "types": list("session.ended"), "description": "on call"}, key).is(201)
		created.has(fields{"id": anID, "url": hookURL, "types": list("session.ended"), "description": "on call", "missed_events": 0, "created_at": aboutNow}).
			lacks("confirmed_at") // before a test
		if secret := created.text("secret"); !strings.HasPrefix(secret, "whsec_") || len(secret) != len("whsec_")+44 {
			t.Errorf("the secret is %q", secret)
		}
		path, shown := created.header.Get("Location"), created.object().without("secret")
		there.get(path, key).is(200).exactly(shown)
		second := w.post("/v1/webhooks", fields{"url": hookURL}, key).is(201)
		wantEqual(t, "the list", there.get("/v1/webhooks", key).is(200).ids(), []string{second.text("id"), created.text("id")})
		changed := there.patch(path, fields{"types": list(), "url": hookURL + "/2"}, key).is(200)
		changed.exactly(shown.with(fields{"types": list(), "url": hookURL + "/2"}))
		w.get(path, key).is(200).exactly(changed.object())
		w.get(path+"/deliveries", key).is(200).isList(t)
		w.delete(path, key).is(204)
		there.delete(path, key).is(404)
		w.get(path, key).is(404)
		w.get(path+"/deliveries", key).is(404)
	})
}

func TestAWrongWebhookIsRefusedWithItsField(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		key := asKey(w.key)
		created := w.post("/v1/webhooks", fields{"url": hookURL}, key).is(201)
		path := "/v1/webhooks/" + created.text("id")
		many := slices.Repeat([]string{"session.ended"}, 65)
		for _, test := range []struct {
			body  fields
			names string
		}{
			{fields{"url": "http://example.com/"}, "url"}, {fields{"url": "https://a:b@example.com/"}, "url"}, {fields{"url": "example.com"}, "url"},
			{fields{"url": "https://example.com:25/"}, "url"}, {fields{"url": hookURL, "types": list("session.flown")}, "types"},
			{fields{"url": hookURL, "types": list("session.ended", "session.ended")}, "types"}, {fields{"url": hookURL, "types": many}, "types"},
			{fields{"url": hookURL, "types": nil}, "types"},
		} {
			w.post("/v1/webhooks", test.body, key).invalid(test.names)
			w.patch(path, test.body, key).invalid(test.names)
		}
		w.get(path+"/deliveries?status=lost", key).invalid("status")
		w.get(path+"/deliveries?session_id="+uuid.NewString(), key).invalid("session_id")
		wantEqual(t, "webhooks", len(w.get("/v1/webhooks", key).is(200).ids()), 1)
	})
}

// Chat services give out URLs that let every holder post.
func TestOnlyAnAdminSeesTheWholeURLOfAWebhook(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		const whole, masked = "https://hooks.example.com/services/T0/B0/secret?key=secret", "https://hooks.example.com/…"
		created := w.post("/v1/webhooks", fields{"url": whole}, asKey(w.key)).is(201).has(fields{"url": whole})
		path := "/v1/webhooks/" + created.text("id")
		w.patch(path, fields{"description": "chat"}, asKey(w.key)).is(200).has(fields{"url": whole})
		w.post(path+"/test", nil, asKey(w.key)).is(200)
		for role, want := range map[string]string{"viewer": masked, "operator": masked, "admin": whole} {
			key := asKey(w.newKey(role).text)
			w.get(path, key).is(200).has(fields{"url": want})
			if listed := w.get("/v1/webhooks", key).is(200).array(); listed[0]["url"] != want {
				t.Errorf("a %s is shown %v, want %s", role, listed, want)
			}
			if shown := w.get(path+"/deliveries", key).is(200); strings.Contains(string(shown.body), "secret") {
				t.Errorf("deliveries show a %s %s", role, shown.body)
			}
		}
	})
}

func TestATestOfAWebhookIsADelivery(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		key := asKey(w.key)
		id := w.post("/v1/webhooks", fields{"url": hookURL}, key).is(201).text("id")
		path := "/v1/webhooks/" + id
		sent := w.post(path+"/test", nil, key).is(200)
		sent.exactly(fields{"id": anID, "webhook_id": id, "type": "webhook.test", "status": "pending", "attempt_count": 0,
			"created_at": aboutNow, "next_attempt_at": aboutNow})
		w.get(path+"/deliveries?status=pending", key).is(200).isList(t, sent.object())
		w.get(path+"/deliveries?status=dead", key).is(200).isList(t)
		w.post(path+"/deliveries/"+sent.text("id")+"/retry", nil, key).is(200).has(fields{"id": sent.text("id"), "status": "pending"})
		w.post(path+"/deliveries/"+uuid.NewString()+"/retry", nil, key).is(404)
		for range 3 {
			w.post(path+"/test", nil, key).is(200)
		}
		if page := w.get(path+"/deliveries?limit=3", key).is(200); len(page.ids()) != 3 || page.header.Get("Link") == "" {
			t.Errorf("a page of %v, then %q", page.ids(), page.header.Get("Link"))
		}
	})
}

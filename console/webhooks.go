package console

import (
	"github.com/valyala/fasthttp"
	"remit/client"
)

const webhooks = Prefix + "/webhooks"

func webhookPath(id string) string { return webhooks + "/" + id }

func showWebhooks(v *visit) error {
	var all []client.WebhookInfo
	if err := v.api.get("/v1/webhooks", &all); err != nil {
		return err
	}
	return v.show("webhooks", "Webhooks", all)
}

func createWebhook(v *visit) error {
	body := map[string]any{"url": v.form("url"), "description": v.form("description")}
	if types := words(v.form("types")); len(types) > 0 {
		body["types"] = types
	}
	var made client.WebhookInfo
	if err := v.api.change(fasthttp.MethodPost, "/v1/webhooks", v.once(), body, &made); err != nil {
		return err
	}
	return v.reveal(webhookPath(made.ID), "The webhook is created. The receiver verifies what it gets with this secret.", "Secret", string(made.Secret))
}

// webhookPage is one webhook with its deliveries.
type webhookPage struct {
	client.WebhookInfo
	paging // of the deliveries

	Status     string
	Statuses   []string
	Deliveries []client.Delivery
}

var deliveryStatuses = []string{statusPending, "delivered", "dead"}

func showWebhook(v *visit) error {
	page := webhookPage{Status: v.asked("status"), Statuses: deliveryStatuses}
	path, cursor := "/v1/webhooks/"+v.param("webhook"), v.asked("cursor")
	if err := v.api.get(path, &page.WebhookInfo); err != nil {
		return err
	}
	next, err := v.api.list(query(path+"/deliveries", "status", page.Status, "limit", "50", "cursor", cursor), &page.Deliveries)
	if err != nil {
		return err
	}
	page.paging = v.paged(cursor, next, func(cursor, past string) string {
		return query(webhookPath(page.ID), "status", page.Status, "cursor", cursor, "past", past)
	})
	return v.show("webhook", page.URL, page)
}

// changeWebhook sends a change of the webhook in the path, and leads back to its page.
func (v *visit) changeWebhook(method, below string, body any, into any, text string) error {
	id := v.param("webhook")
	if err := v.api.change(method, "/v1/webhooks/"+id+below, v.once(), body, into); err != nil {
		return err
	}
	return v.done(webhookPath(id), text)
}

func testWebhook(v *visit) error {
	return v.changeWebhook(fasthttp.MethodPost, "/test", map[string]any{}, nil, "A test event is on its way. Reload the page to see how it went.")
}

func retryDelivery(v *visit) error {
	return v.changeWebhook(fasthttp.MethodPost, "/deliveries/"+v.param("delivery")+"/retry", nil, nil, "The event is sent again.")
}

func rotateWebhook(v *visit) error {
	if err := v.confirmed("rotate"); err != nil {
		return err
	}
	var rotated client.RotatedSecret
	path := "/v1/webhooks/" + v.param("webhook") + "/rotate"
	if err := v.api.change(fasthttp.MethodPost, path, v.once(), map[string]any{}, &rotated); err != nil {
		return err
	}
	return v.reveal(webhookPath(v.param("webhook")), "The webhook has a new secret. For a day requests are signed by both.", "Secret", string(rotated.Secret))
}

func changeWebhook(v *visit) error {
	body := map[string]any{"url": v.form("url"), "description": v.form("description"), "types": words(v.form("types"))}
	return v.changeWebhook(fasthttp.MethodPatch, "", body, nil, "The webhook is changed.")
}

func deleteWebhook(v *visit) error {
	if err := v.confirmed("delete"); err != nil {
		return err
	}
	if err := v.api.change(fasthttp.MethodDelete, "/v1/webhooks/"+v.param("webhook"), "", nil, nil); err != nil && !isNotFound(err) { // it is gone
		return err
	}
	return v.done(webhooks, "The webhook is deleted, with its deliveries.")
}

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
	page := webhookPage{Status: v.queryParam("status"), Statuses: deliveryStatuses}
	path, cursor := v.at(apiWebhook), v.queryParam("cursor")
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

const apiWebhook = "/v1/webhooks/{webhook}"

var (
	createWebhook = call{
		post, "/v1/webhooks", fields{"url": asTyped, "description": asTyped, "types": readSomeWords},
		webhook, "The webhook is created. The receiver verifies what it gets with this secret.",
	}
	rotateWebhook = call{post, apiWebhook + "/rotate", nil, webhook, "The webhook has a new secret. For a day requests are signed by both."}
	testWebhook   = call{post, apiWebhook + "/test", nil, webhook, "A test event is on its way. Reload the page to see how it went."}
	retryDelivery = call{post, apiWebhook + "/deliveries/{delivery}/retry", nil, webhook, "The event is sent again."}
	deleteWebhook = call{fasthttp.MethodDelete, apiWebhook, nil, webhooks, "The webhook is deleted, with its deliveries."}
	changeWebhook = call{
		fasthttp.MethodPatch, apiWebhook, fields{"url": asTyped, "description": asTyped, "types": readWords}, webhook, "The webhook is changed.",
	}
)

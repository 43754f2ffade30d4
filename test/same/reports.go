package main

import (
	"errors"
	"strings"
	"time"

	"remit/client"
	"remit/money"
)

// A service refuses to connect to this URL, as it is not public: the calls cause no traffic.
const receiver = "https://127.0.0.1/remit"

// reports makes the calls about what happened, and about who learns it.
func reports(done *steps, remit *client.Client, o *client.Organization) {
	made := get(o.CreateAgent(ctx, client.AgentParams{Name: "clerk"}))
	agent := remit.Agent(made.ID, string(made.Secret))
	toldKeys(done, remit, o)
	toldUsage(done, o, agent)
	toldEvents(done, o)
	toldWebhooks(done, o)
}

func toldKeys(done *steps, remit *client.Client, o *client.Organization) {
	made := get(o.CreateAPIKey(ctx, client.APIKeyParams{Name: "dashboard", Role: "viewer", ExpiresIn: time.Hour}))
	done.add("create an API key", "%s %s %t %s", made.Name, made.Role, made.APIKey != "", made.ExpiresAt.Sub(made.CreatedAt))
	viewer := remit.Organization(string(made.APIKey))
	lacks := as[*client.InsufficientRole](second(viewer.CreateAgent(ctx, client.AgentParams{Name: "scout"})))
	done.add("a role is lacking", "%s", lacks.RequiredRole)
	keys := get(viewer.APIKeys(ctx))
	done.add("list API keys", "%d %s %s %t %t", len(keys), keys[0].Name, keys[1].Role, keys[1].ExpiresAt == nil, strings.HasSuffix(string(made.APIKey), keys[0].Hint))
	last := o.DeleteAPIKey(ctx, keys[1].ID)
	done.add("the last admin key is deleted", "%t", errors.Is(last, client.ErrLastAdminKey))
	rotated := get(o.RotateAPIKey(ctx, made.ID, client.RotateKeyParams{Grace: new(time.Minute)}))
	done.add("rotate any API key", "%t", rotated.APIKey != made.APIKey)
	must(o.DeleteAPIKey(ctx, made.ID))
	done.add("delete an API key", "%t", errors.Is(second(viewer.APIKeys(ctx)), client.ErrUnauthorized))
}

func toldUsage(done *steps, o *client.Organization, agent *client.Agent) {
	session := sessionFor(o, agent, client.SessionParams{Thresholds: []int{50}})
	thresholds := get(o.UpdateSession(ctx, session.ID(), client.SessionLimits{Thresholds: []int{25, 75}})).Thresholds
	done.add("choose thresholds", "%d %d %d", len(thresholds), thresholds[0], thresholds[1])
	get(session.Charge(ctx, client.Charge{ActionType: "llm.call", Value: money.USD / 4, Count: 2}))
	get(session.Charge(ctx, client.Charge{Value: money.USD}))
	get(session.Usage(ctx))
	lines := get(o.SessionUsage(ctx, session.ID()))
	done.add("usage of a session", "%s %d %s; %t %s", *lines[0].ActionType, lines[0].ActionCount, lines[0].Value, lines[1].ActionType == nil, lines[1].Value)
	wanted := client.UsageParams{GroupBy: []string{"agent", "action_type"}, AgentID: agent.ID()}
	lines = get(o.Usage(ctx, wanted))
	done.add("usage of the organization", "%d %t %s", len(lines), lines[0].AgentID == agent.ID(), lines[1].Value+lines[0].Value)
	wanted.GroupBy = []string{"action_type"}
	done.add("usage as a table", "%q", strings.Split(get(o.UsageCSV(ctx, wanted)), "\r\n"))
}

func toldEvents(done *steps, o *client.Organization) {
	wanted := client.EventSessionSuspended
	for event, err := range o.AllEvents(ctx, 0, wanted) {
		must(err)
		done.add("the types of events", "%t", event.Type == wanted)
		done.add("follow all events", "%s %t %d", event.Type, event.Sequence > 1, len(event.PreviousHash))
		break
	}
	done.add("read all events to the end", "%d", count(o.ListAllEvents(ctx, 0, "session.suspended")))
	done.add("a signed checkpoint", "%d", len(strings.Split(get(o.Checkpoint(ctx)), ".")))
}

func toldWebhooks(done *steps, o *client.Organization) {
	made := get(o.CreateWebhook(ctx, client.WebhookParams{URL: receiver, Types: []client.EventType{client.EventAgentSuspended}, Description: "on call"}))
	done.add("create a webhook", "%s %q %t", made.URL, made.Types, strings.HasPrefix(string(made.Secret), "whsec_"))
	done.add("list webhooks", "%d %s", len(get(o.Webhooks(ctx))), get(o.Webhooks(ctx))[0].Description)
	done.add("read a webhook", "%d %t", get(o.GetWebhook(ctx, made.ID)).MissedEvents, get(o.GetWebhook(ctx, made.ID)).Secret == "")
	changed := get(o.UpdateWebhook(ctx, made.ID, client.WebhookChanges{Types: &[]client.EventType{client.EventAgentRevoked}, Description: new("")}))
	done.add("change a webhook", "%q %s.", changed.Types, changed.Description)
	rotated := get(o.RotateWebhookSecret(ctx, made.ID, client.RotateWebhookParams{Grace: new(time.Minute)}))
	done.add("rotate a webhook's secret", "%t", rotated.Secret != made.Secret)
	sent := get(o.TestWebhook(ctx, made.ID))
	done.add("test a webhook", "%s %d", sent.Type, sent.EventSequence)
	listed := false // beside the test that the service sends by itself
	for one, err := range o.Deliveries(ctx, made.ID, client.DeliveryFilter{}) {
		must(err)
		listed = listed || one.ID == sent.ID
	}
	done.add("list deliveries", "%t", listed)
	done.add("retry a delivery", "%t %s", get(o.RetryDelivery(ctx, made.ID, sent.ID)).ID == sent.ID, sent.Status)
	must(o.DeleteWebhook(ctx, made.ID))
	done.add("delete a webhook", "%t", errors.Is(second(o.GetWebhook(ctx, made.ID)), client.ErrNotFound))
}

// contractTold makes those calls whose answers a test cannot bring about.
func contractTold(done *steps, o *client.Organization) {
	lines := get(o.Usage(ctx, client.UsageParams{FirstDay: "2026-11-01", LastDay: "2026-11-02", GroupBy: []string{"day", "session"}}))
	done.add("usage of the organization", "%s %t %s; %s", lines[0].Day, lines[0].SessionID == nil, lines[0].Value, lines[1].Value)
	keys := get(o.APIKeys(ctx))
	done.add("list API keys", "%s %d", keys[0].Hint, keys[0].LastUsedAt.Unix())
	for sent, err := range o.Deliveries(ctx, "w1", client.DeliveryFilter{Status: "pending"}) {
		must(err)
		done.add("list deliveries", "%d %s %d %d %s %d", sent.EventSequence, sent.Status, sent.AttemptCount, sent.ResponseStatus, sent.Error, sent.DurationMS)
		done.add("list deliveries", "%d %t", sent.NextAttemptAt.Unix(), sent.LastAttemptAt.IsZero())
	}
	failing := get(o.GetWebhook(ctx, "w1"))
	done.add("read a webhook", "%d %d %d", failing.MissedEvents, failing.FailingSince.Unix(), failing.ConfirmedAt.Unix())
	for event, err := range o.ListAllEvents(ctx, 40) {
		must(err)
		done.add("read all events to the end", "%d %s. %s %s", event.Sequence, event.AgentID, event.Actor.Type, event.PreviousHash)
	}
	must(o.DeleteWebhook(ctx, "w2"))
	done.add("delete a webhook", "true")
}

package client_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"remit/client"
	"remit/money"
)

// What a lost attempt has deleted is not there any more: that is what was asked for. What never was there is an error.
func TestADeletionWhoseResponseIsLostSucceeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := refusal(404, "not_found")
		for name, test := range map[string]struct {
			answers []reaction
			want    error
		}{
			"lost":          {[]reaction{fails(errReset), gone}, nil},
			"unknown":       {[]reaction{refusal(503, "outcome_unknown"), gone}, nil},
			"never there":   {[]reaction{gone}, client.ErrNotFound},
			"not sent":      {[]reaction{fails(errRefused), gone}, client.ErrNotFound},
			"another's 404": {[]reaction{fails(errReset), {status: 404, body: "<html>"}}, client.ErrOutcomeUnknown},
		} {
			for _, remove := range []func(*client.Organization) error{
				func(o *client.Organization) error { return o.DeleteAPIKey(t.Context(), "k1") },
				func(o *client.Organization) error { return o.DeleteWebhook(t.Context(), "w1") },
			} {
				f := &fake{react: inTurn(test.answers...)}
				if err := remove(newClient(t, f, client.Options{}).Organization("k")); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}

func TestUsageIsReadExactly(t *testing.T) {
	t.Parallel()
	const lines = `[{"day":"2026-11-01","session_id":null,"action_count":-2,"value_usd":-0.000001},{"day":"2026-11-02","session_id":"s1",` +
		`"action_count":3,"value_usd":9007199254.740993,"of_tomorrow":{}}]`
	f := &fake{react: inTurn(ok(lines), ok(`[{"action_count":1,"value_usd":1.0000001}]`), ok(`[{"value_usd":"1"}]`), ok("day,value_usd\r\n2026-11-01,-1\r\n"))}
	o := newClient(t, f, client.Options{MaxAttempts: 1}).Organization("k")
	wanted := client.UsageParams{FirstDay: "2026-11-01", LastDay: "2026-11-02", GroupBy: []string{"day", "session"}, AgentID: "a1"}
	got, err := o.Usage(t.Context(), wanted)
	if err != nil || len(got) != 2 || got[0].Value != -1 || got[0].ActionCount != -2 || got[0].SessionID != nil || got[0].Day != "2026-11-01" ||
		got[1].Value != 9_007_199_254_740_993 || *got[1].SessionID != "s1" || got[1].ActionType != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if query := f.requests[0].query; query != "agent_id=a1&format=json&from=2026-11-01&group_by=day%2Csession&to=2026-11-02" {
		t.Errorf("asks for %s", query)
	}
	for range 2 {
		if got, err := o.Usage(t.Context(), client.UsageParams{}); err == nil {
			t.Errorf("an amount that is none is read as %+v", got)
		}
	}
	if table, err := o.UsageCSV(t.Context(), client.UsageParams{}); err != nil || table != "day,value_usd\r\n2026-11-01,-1\r\n" {
		t.Errorf("%q, %v", table, err)
	}
}

func TestKeysDoWhatTheirRolesAllow(t *testing.T) {
	t.Parallel()
	o := organization()
	agent := agentOf(o)
	made, err := o.CreateAPIKey(t.Context(), client.APIKeyParams{Name: "desk", Role: "operator", IdempotencyKey: "once"})
	if err != nil || made.ExpiresAt != nil || made.LastUsedAt != nil {
		t.Fatalf("%+v, %v", made, err)
	}
	if again, err := o.CreateAPIKey(t.Context(), client.APIKeyParams{Name: "desk", Role: "operator", IdempotencyKey: "once"}); err != nil || again.APIKey != made.APIKey {
		t.Errorf("%+v, %v", again, err)
	}
	operator := remit().Organization(string(made.APIKey))
	if _, err := operator.CreateSession(t.Context(), client.SessionParams{AgentID: agent.ID()}); err != nil {
		t.Error(err)
	}
	_, err = operator.CreateWebhook(t.Context(), client.WebhookParams{URL: "https://127.0.0.1/"})
	if lacks, _ := as[*client.InsufficientRole](err).(*client.InsufficientRole); lacks == nil || lacks.RequiredRole != "admin" {
		t.Error(err)
	}
	keys, err := operator.APIKeys(t.Context())
	if err != nil || len(keys) != 2 || keys[0].ID != made.ID || keys[0].LastUsedAt == nil || keys[1].Role != "admin" || keys[1].APIKey != "" {
		t.Fatalf("%+v, %v", keys, err)
	}
	if err := o.DeleteAPIKey(t.Context(), keys[1].ID); !errors.Is(err, client.ErrLastAdminKey) {
		t.Error(err)
	}
	if err := o.DeleteAPIKey(t.Context(), made.ID); err != nil {
		t.Error(err)
	}
	if err := o.DeleteAPIKey(t.Context(), made.ID); !errors.Is(err, client.ErrNotFound) {
		t.Error(err)
	}
	if _, err := operator.APIKeys(t.Context()); !errors.Is(err, client.ErrUnauthorized) {
		t.Error(err)
	}
}

func TestUsageAddsUpToWhatTheSessionShows(t *testing.T) {
	t.Parallel()
	o := organization()
	agent := agentOf(o)
	session := sessionOf(o, agent, client.SessionParams{MaxLease: 60e9})
	lease, err := session.Lease(t.Context(), client.LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	charge := client.Charge{ActionType: "llm.call", Value: money.USD / 8}
	for _, one := range []func() error{
		func() error { _, err := session.Charge(t.Context(), charge); return err },
		func() error { return lease.Charge(t.Context(), charge) },
		func() error { return lease.Charge(t.Context(), client.Charge{Value: 1}) },
		func() error { return lease.Close(t.Context()) },
	} {
		if err := one(); err != nil {
			t.Fatal(err)
		}
	}
	info, err := session.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines, err := session.Usage(t.Context())
	if err != nil || len(lines) != 2 || *lines[0].ActionType != "llm.call" || lines[0].Value != money.USD/4 || lines[0].ActionCount != 2 ||
		lines[0].Value+lines[1].Value != info.ValueUsed || lines[0].ActionCount+lines[1].ActionCount != info.ActionCount {
		t.Errorf("%+v, %v, but the session has %+v", lines, err, info)
	}
	report, err := o.Usage(t.Context(), client.UsageParams{GroupBy: []string{"session"}, AgentID: agent.ID()})
	if err != nil || len(report) != 1 || *report[0].SessionID != session.ID() || report[0].Value != info.ValueUsed || report[0].ActionCount != info.ActionCount {
		t.Errorf("%+v, %v", report, err)
	}
}

// The service refuses to connect to the address, which is not public.
func TestAWebhookIsTestedAndItsDeliveryRetried(t *testing.T) {
	t.Parallel()
	o := organization()
	made, err := o.CreateWebhook(t.Context(), client.WebhookParams{URL: "https://127.0.0.1/remit"})
	if err != nil || made.Secret == "" || len(made.Types) != 0 {
		t.Fatalf("%+v, %v", made, err)
	}
	sent, err := o.TestWebhook(t.Context(), made.ID)
	if err != nil || sent.Type != "webhook.test" || sent.Status != "pending" || sent.WebhookID != made.ID {
		t.Fatalf("%+v, %v", sent, err)
	}
	if again, err := o.RetryDelivery(t.Context(), made.ID, sent.ID); err != nil || again.ID != sent.ID {
		t.Errorf("%+v, %v", again, err)
	}
	ids := collect(t, o.Deliveries(t.Context(), made.ID, client.DeliveryFilter{Status: "pending"}), func(d client.Delivery) string { return d.ID })
	if !slices.Contains(ids, sent.ID) { // beside the test that the service sends by itself
		t.Errorf("%q", ids)
	}
	if err := o.DeleteWebhook(t.Context(), made.ID); err != nil {
		t.Error(err)
	}
	if _, err := o.TestWebhook(t.Context(), made.ID); !errors.Is(err, client.ErrNotFound) {
		t.Error(err)
	}
}

package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"remit/client"
	"remit/money"
)

const (
	rotatedKey    = `{"api_key":"rmk_2","previous_expires_at":"2026-11-21T08:24:32.859Z"}`
	rotatedSecret = `{"secret":"rms_2","previous_expires_at":"2026-11-21T08:24:32.859Z"}`
	sessionBody   = `{"id":"s1","agent_id":"a1","status":"active","max_actions":10,"action_count":3,"max_value_usd":8,"value_used_usd":1.5,` +
		`"value_held_usd":0.25,"value_overage_usd":0,"value_committed_usd":6.5,"max_committed_usd":20,"scopes":[],"metadata":{},` +
		`"expires_at":"2026-11-21T09:19:32.859Z","created_at":"2026-11-21T08:19:32.859Z","a_field_of_tomorrow":{"x":[1]}}`
)

// Each of these is one request, retried after two lost responses, with the same key unless it is idempotent by itself.
func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		do     func(context.Context, *client.Client, *client.Organization) error
		sent   string
		keyed  bool
		answer string
	}{
		{"rotate a key", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.RotateKey(ctx, "o1", client.RotateKeyParams{})
			return err
		}, `POST /v1/organizations/o1/api-key/rotate {}`, true, rotatedKey},
		{"rotate a key at once", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.RotateKey(ctx, "o1", client.RotateKeyParams{Grace: new(time.Duration)})
			return err
		}, `POST /v1/organizations/o1/api-key/rotate {"grace_seconds":0}`, true, rotatedKey},
		{"rotate a secret", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.RotateAgentSecret(ctx, "a1", client.RotateSecretParams{})
			return err
		}, `POST /v1/agents/a1/secret/rotate {}`, true, rotatedSecret},
		{"rotate a stolen secret", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.RotateAgentSecret(ctx, "a1", client.RotateSecretParams{Grace: time.Second + 1, RevokeFamilies: true})
			return err
		}, `POST /v1/agents/a1/secret/rotate {"grace_seconds":2,"revoke_families":true}`, true, rotatedSecret},
		{"create an organization", func(ctx context.Context, c *client.Client, _ *client.Organization) error {
			_, err := c.CreateOrganization(ctx, client.OrganizationParams{Name: "acme"})
			return err
		}, `POST /v1/organizations {"name":"acme"}`, true, `{}`},
		{"create an agent", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.CreateAgent(ctx, client.AgentParams{Name: "scout"})
			return err
		}, `POST /v1/agents {"name":"scout","scopes":[]}`, true, `{}`},
		{"revoke a family", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			return o.RevokeFamily(ctx, "a1", "../f1")
		}, `DELETE /v1/agents/a1/families/../f1 `, false, `{"revoked":true}`},
		{"create a session", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.CreateSession(ctx, client.SessionParams{AgentID: "a1", MaxCommitted: new(20 * money.USD)})
			return err
		}, `POST /v1/sessions {"agent_id":"a1","max_committed_usd":20}`, true, sessionBody},
		{"set limits", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.UpdateSession(ctx, "s1", client.SessionLimits{MaxActions: 5})
			return err
		}, `PATCH /v1/sessions/s1 {"max_actions":5}`, false, sessionBody},
		{"top up", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.UpdateSession(ctx, "s1", client.SessionLimits{AddActions: 5, AddValue: money.USD / 4})
			return err
		}, `PATCH /v1/sessions/s1 {"add_actions":5,"add_value_usd":0.25}`, true, sessionBody},
		{"begin without a state", func(ctx context.Context, c *client.Client, _ *client.Organization) error {
			_, err := c.Agent("a1", "s").Session("s1").Begin(ctx, client.TransactionParams{ActionType: "edit"})
			return err
		}, `POST /v1/transactions {"action_type":"edit","pre_state":{},"session_id":"s1","reversible":true}`, true, transactionBody("pending")},
		{"change a transaction", func(ctx context.Context, c *client.Client, _ *client.Organization) error {
			return c.Agent("a1", "s").Transaction("t1").Update(ctx, client.TransactionChanges{Value: new(money.MicroUSD), ExpiresIn: time.Minute})
		}, `PATCH /v1/transactions/t1 {"value_usd":0,"expires_in_seconds":60}`, false, transactionBody("pending")},
		{"create an agent with limits", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.CreateAgent(ctx, client.AgentParams{Name: "scout", Limits: client.AgentLimits{MaxOpenSessions: new(int64)}})
			return err
		}, `POST /v1/agents {"name":"scout","scopes":[],"limits":{"max_open_sessions":0}}`, true, `{}`},
		{"change an agent", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.UpdateAgent(ctx, "a1", client.AgentChanges{
				Name: "spy", Description: new(string), Metadata: map[string]int{"tier": 2}, Scopes: new([]string),
				Limits: client.AgentLimits{MaxValuePerDay: new(money.USD / 2), MaxActionsPerMinute: new(int64(client.NoLimit))},
			})
			return err
		}, `PATCH /v1/agents/a1 {"name":"spy","description":"","metadata":{"tier":2},"scopes":[],` +
			`"limits":{"max_actions_per_minute":null,"max_value_usd_per_day":0.5}}`, false, `{}`},
		{"suspend an agent", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.SuspendAgent(ctx, "a1", "")
			return err
		}, `POST /v1/agents/a1/suspend {}`, false, `{}`},
		{"resume an agent", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.ResumeAgent(ctx, "a1", "fixed")
			return err
		}, `POST /v1/agents/a1/resume {"reason":"fixed"}`, false, `{}`},
		{"suspend all agents", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.SuspendAllAgents(ctx, "leak")
			return err
		}, `POST /v1/agents/suspend {"all":true,"reason":"leak"}`, false, `{"suspended":2}`},
		{"resume all agents", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.ResumeAllAgents(ctx)
			return err
		}, `POST /v1/agents/resume {"all":true}`, false, `{"resumed":2}`},
		{"suspend a session", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.SuspendSession(ctx, "s1", "odd")
			return err
		}, `POST /v1/sessions/s1/suspend {"reason":"odd"}`, false, sessionBody},
		{"resume a session", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.ResumeSession(ctx, "s1", "")
			return err
		}, `POST /v1/sessions/s1/resume {}`, false, sessionBody},
		{"set a limit per action", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.UpdateSession(ctx, "s1", client.SessionLimits{MaxValuePerAction: new(money.USD), Enforcement: "observe"})
			return err
		}, `PATCH /v1/sessions/s1 {"enforcement":"observe","max_value_usd_per_action":1}`, false, sessionBody},
		{"remove a limit per action", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.UpdateSession(ctx, "s1", client.SessionLimits{MaxValuePerAction: new(money.MicroUSD(client.NoLimit))})
			return err
		}, `PATCH /v1/sessions/s1 {"max_value_usd_per_action":null}`, false, sessionBody},
		{"create a child", func(ctx context.Context, c *client.Client, _ *client.Organization) error {
			_, err := c.Agent("a1", "s").Session("s1").CreateChild(ctx, client.SessionParams{MaxActions: 2, MaxValuePerAction: new(money.USD)})
			return err
		}, `POST /v1/sessions {"agent_id":"a1","max_actions":2,"max_value_usd_per_action":1,"parent_session_id":"s1"}`, true, sessionBody},
		{"read a tree", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.SessionTree(ctx, "s1")
			return err
		}, `GET /v1/sessions/s1/tree `, false, `{"id":"s1","children":[]}`},
		{"ask for more", func(ctx context.Context, c *client.Client, _ *client.Organization) error {
			_, err := c.Agent("a1", "s").Session("s1").RequestMore(ctx, client.MoreParams{AddValue: 1, Reason: "a page more"})
			return err
		}, `POST /v1/sessions/s1/requests {"add_value_usd":0.000001,"reason":"a page more"}`, true, moreBody("pending")},
		{"approve in part", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.ApproveRequest(ctx, "s1", "r/1", client.ApprovalParams{AddActions: new(int64), Comment: "ok"})
			return err
		}, `POST /v1/sessions/s1/requests/r/1/approve {"add_actions":0,"comment":"ok"}`, false, moreBody("approved")},
		{"deny", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.DenyRequest(ctx, "s1", "r1", "")
			return err
		}, `POST /v1/sessions/s1/requests/r1/deny {}`, false, moreBody("denied")},
		{"set a budget", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.SetBudget(ctx, client.BudgetParams{MaxValue: 0, Period: "month"})
			return err
		}, `PUT /v1/budget {"max_value_usd":0,"period":"month"}`, false, `{"max_value_usd":0}`},
		{"delete a budget", func(ctx context.Context, _ *client.Client, o *client.Organization) error { return o.DeleteBudget(ctx) },
			`DELETE /v1/budget `, false, ``},
		{"try a charge", func(ctx context.Context, c *client.Client, _ *client.Organization) error {
			_, err := c.Agent("a1", "s").Session("s1").DryRunCharge(ctx, client.Charge{Count: 2, IdempotencyKey: "own", OnLimit: client.Ask})
			return err
		}, `POST /v1/sessions/s1/actions {"count":2,"dry_run":true}`, false, usageBody},
		{"try a transaction", func(ctx context.Context, c *client.Client, _ *client.Organization) error {
			_, err := c.Agent("a1", "s").Session("s1").DryRunBegin(ctx, client.TransactionParams{ActionType: "edit", Value: 1})
			return err
		}, `POST /v1/transactions {"action_type":"edit","pre_state":{},"session_id":"s1","value_usd":0.000001,"reversible":true,"dry_run":true}`, false, `{"dry_run":true}`},
		{"create a key", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.CreateAPIKey(ctx, client.APIKeyParams{Name: "dashboard", Role: "viewer", ExpiresIn: time.Second + 1})
			return err
		}, `POST /v1/api-keys {"name":"dashboard","role":"viewer","expires_in_seconds":2}`, true, `{}`},
		{"rotate any key", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.RotateAPIKey(ctx, "k/1", client.RotateKeyParams{Grace: new(time.Minute)})
			return err
		}, `POST /v1/api-keys/k/1/rotate {"grace_seconds":60}`, true, rotatedKey},
		{"delete a key", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			return o.DeleteAPIKey(ctx, "k1")
		},
			`DELETE /v1/api-keys/k1 `, false, ``},
		{"create a webhook", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.CreateWebhook(ctx, client.WebhookParams{URL: "https://example.com/?a&b", Types: []client.EventType{"session.ended"}})
			return err
		}, `POST /v1/webhooks {"url":"https://example.com/?a&b","types":["session.ended"]}`, true, `{}`},
		{"change a webhook", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.UpdateWebhook(ctx, "w1", client.WebhookChanges{Types: new([]client.EventType), Description: new(string)})
			return err
		}, `PATCH /v1/webhooks/w1 {"types":[],"description":""}`, false, `{}`},
		{"rotate a webhook's secret", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.RotateWebhookSecret(ctx, "w1", client.RotateWebhookParams{})
			return err
		}, `POST /v1/webhooks/w1/rotate {}`, true, rotatedSecret},
		{"test a webhook", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.TestWebhook(ctx, "w1")
			return err
		}, `POST /v1/webhooks/w1/test {}`, true, `{}`},
		{"retry a delivery", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			_, err := o.RetryDelivery(ctx, "w1", "d1")
			return err
		}, `POST /v1/webhooks/w1/deliveries/d1/retry `, false, `{}`},
		{"delete a webhook", func(ctx context.Context, _ *client.Client, o *client.Organization) error {
			return o.DeleteWebhook(ctx, "w1")
		},
			`DELETE /v1/webhooks/w1 `, false, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fake{react: issues(inTurn(fails(errReset), fails(errReset), ok(test.answer)))}
				remit := newClient(t, f, client.Options{})
				if err := test.do(t.Context(), remit, remit.Organization("k")); err != nil {
					t.Fatal(err)
				}
				keys := map[string]bool{}
				sent := 0
				for _, r := range f.requests {
					if r.path == exchangePath {
						continue
					}
					sent++
					keys[r.header.Get("Idempotency-Key")] = true
					if got := r.method + " " + r.path + " " + r.body; got != test.sent {
						t.Errorf("sent %s, want %s", got, test.sent)
					}
				}
				if sent != 3 || len(keys) != 1 || keys[""] == test.keyed {
					t.Errorf("sent %d times with the keys %v", sent, keys)
				}
			})
		})
	}
}

// Without a key a top-up whose response is lost stays in doubt, because a retry would count twice.
func TestATopUpWithoutAKeyIsNotRetried(t *testing.T) {
	t.Parallel()
	f := &fake{react: inTurn(fails(errReset))}
	organization := newClient(t, f, client.Options{NoIdempotencyKeys: true}).Organization("k")
	_, err := organization.UpdateSession(t.Context(), "s1", client.SessionLimits{AddValue: money.USD})
	if !errors.Is(err, client.ErrOutcomeUnknown) || len(f.requests) != 1 {
		t.Errorf("%v, sent %d times", err, len(f.requests))
	}
}

func TestASessionHasItsCommittedTotal(t *testing.T) {
	t.Parallel()
	f := &fake{react: inTurn(ok(sessionBody), ok(`{"id":"s1"}`))}
	organization := newClient(t, f, client.Options{}).Organization("k")
	s, err := organization.GetSession(t.Context(), "s1")
	if err != nil || s.ValueCommitted != 13*money.USD/2 || s.MaxCommitted == nil || *s.MaxCommitted != 20*money.USD {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := organization.GetSession(t.Context(), "s1"); err != nil || s.MaxCommitted != nil {
		t.Errorf("without a limit: %+v, %v", s, err)
	}
}

func TestFamiliesAreListed(t *testing.T) {
	t.Parallel()
	f := &fake{react: inTurn(ok(`[{"family_id":"f1","created_at":"2026-11-21T08:19:32.859Z","last_used_at":"2026-11-21T08:20:00.000Z",` +
		`"expires_at":"2026-11-28T08:19:32.859Z","address":"of tomorrow"},{"family_id":"f2","created_at":"2026-11-21T08:19:32.859Z","expires_at":"2026-11-28T08:19:32.859Z"}]`))}
	var got []client.Family
	for family, err := range newClient(t, f, client.Options{}).Organization("k").Families(t.Context(), "a1") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, family)
	}
	if len(got) != 2 || got[0].ID != "f1" || got[0].LastUsedAt.Minute() != 20 || got[0].ExpiresAt.Day() != 28 || !got[1].LastUsedAt.IsZero() {
		t.Errorf("%+v", got)
	}
	if path := f.requests[0].path; path != "/v1/agents/a1/families" {
		t.Errorf("asked %s", path)
	}
}

// An unknown quota, or one that is not a number, hides no other.
func TestQuotasThatAreNotIntegersAreLeftOut(t *testing.T) {
	t.Parallel()
	f := &fake{react: inTurn(
		ok(`{"id":"o1","quotas":{"agents":10000,"of_tomorrow":7,"bytes":null,"odd":"x","half":0.5},"usage":{"agents":3}}`),
		ok(`{"id":"o1"}`),
	)}
	organization := newClient(t, f, client.Options{}).Organization("k")
	info, err := organization.Info(t.Context(), "o1")
	if err != nil || len(info.Quotas) != 2 || info.Quotas["agents"] != 10000 || info.Quotas["of_tomorrow"] != 7 || info.Usage["agents"] != 3 {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err := organization.Info(t.Context(), "o1"); err != nil || info.Quotas != nil || info.Usage != nil {
		t.Errorf("without: %+v, %v", info, err)
	}
}

func TestALateCommitIsMarked(t *testing.T) {
	t.Parallel()
	late := ok(transactionBody("committed")[:len(transactionBody("committed"))-1] + `,"late":true}`)
	tx := begin(t, &fake{react: settles(late, rolledBack)})
	if tx.Info().Late {
		t.Error("it is late before it is committed")
	}
	if err := tx.Commit(t.Context(), client.CommitParams{}); err != nil || !tx.Info().Late {
		t.Errorf("%+v, %v", tx.Info(), err)
	}
}

func TestUpdateSetsTheInfo(t *testing.T) {
	t.Parallel()
	f := &fake{react: issues(func(n int, r seen) reaction {
		if r.method == "PATCH" {
			return refusal(403, "session_limit_reached", limitMembers)
		}
		return ok(transactionBody("pending"))
	})}
	tx := begin(t, f)
	var limit *client.LimitReached
	if err := tx.Update(t.Context(), client.TransactionChanges{Value: new(9 * money.USD)}); !errors.As(err, &limit) || limit.Usage != usage {
		t.Error(err)
	}
	if err := tx.Commit(t.Context(), client.CommitParams{}); err != nil {
		t.Errorf("it cannot be committed after a refused change: %v", err)
	}
}

package main

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"remit/client"
	"remit/money"
)

func contract(done *steps, remit *client.Client) {
	o := remit.Organization("rmk_1")
	for family, err := range o.Families(ctx, "a1") {
		must(err)
		done.add("list families", "%s %d %t", family.ID, family.ExpiresAt.Unix(), family.LastUsedAt.IsZero())
	}
	must(o.RevokeFamily(ctx, "a1", "f/1"))
	done.add("revoke a family", "true")
	replaced := get(o.RotateKey(ctx, "o1", client.RotateKeyParams{Grace: new(time.Duration)}))
	done.add("rotate its API key", "%s", string(replaced.APIKey))
	stolen := get(o.RotateAgentSecret(ctx, "a1", client.RotateSecretParams{Grace: 3 * time.Second / 2, RevokeFamilies: true}))
	done.add("rotate a stolen secret", "%s", string(stolen.Secret))
	limited := get(o.CreateSession(ctx, client.SessionParams{AgentID: "a1", MaxCommitted: new(20 * money.USD)}))
	done.add("limit what is ever committed", "%s of %s", limited.ValueCommitted, *limited.MaxCommitted)
	topped := get(o.UpdateSession(ctx, "s1", client.SessionLimits{AddActions: 5, AddValue: money.USD / 4}))
	done.add("top up", "%d", topped.MaxActions)
	info := get(o.Info(ctx, "o1"))
	done.add("quotas and usage", "%d %d %d", info.Quotas["agents"], info.Usage["agents"], len(info.Quotas))

	tx := remit.Agent("a1", "rms_1").Transaction("t1")
	must(tx.Update(ctx, client.TransactionChanges{Value: new(money.MicroUSD), ExpiresIn: time.Minute}))
	done.add("change a transaction", "%s", tx.Info().ValueHeld)
	must(tx.Commit(ctx, client.CommitParams{IdempotencyKey: "own"}))
	done.add("commit after it expired", "%t", tx.Info().Late)

	once := get(client.FromEnv(client.Options{MaxAttempts: 1})).Organization("rmk_1")
	quota := as[*client.QuotaExceeded](second(once.CreateAgent(ctx, client.AgentParams{Name: "quota_exceeded"})))
	done.add("a quota is exceeded", "%s %d %d %s", quota.Quota, quota.Used, quota.Max, answered(quota))
	for _, refused := range []struct {
		name, code string
		is         error
	}{
		{"the organization is suspended", "organization_suspended", client.ErrOrganizationSuspended},
		{"requests come too fast", "rate_limited", client.ErrRateLimited},
		{"the service is unavailable", "unavailable", client.ErrUnavailable},
		{"a write may have happened", "outcome_unknown", client.ErrOutcomeUnknown},
	} {
		err := second(once.CreateAgent(ctx, client.AgentParams{Name: refused.code}))
		done.add(refused.name, "%t", errors.Is(err, refused.is))
	}
	for n := 0; ; n++ {
		err := second(o.GetSession(ctx, fmt.Sprint("refused-", n)))
		if err == nil {
			break
		}
		done.add("what an error says", "%s", regexp.MustCompile(`\d{3} .*`).FindString(err.Error()))
	}
}

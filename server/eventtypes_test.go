package server_test

import "testing"

func TestEachChangeOfAnAgentAndItsTokensLeavesItsEventOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) { // whose setup has no grace for refresh tokens
		w := api.newTenant()
		created := w.post("/v1/agents", fields{"name": "scout", "scopes": list("read")}, asKey(w.key)).is(201)
		w.agent = agent{created.text("id"), created.text("secret")}
		l := &trail{tenant: w}
		l.gains(created, "api_key", fields{"type": "agent.created"})

		rotated := w.change()
		w.agent.secret = rotated.text("secret")
		l.gains(rotated, "api_key", fields{"type": "agent.secret_rotated",
			"data": map[string]any{"previous_expires_at": rotated.text("previous_expires_at")}})

		issued := w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}).is(200)
		first := pairIn(issued)
		family := familyOf(t, api, first.access)
		l.gains(issued, "agent", fields{"type": "token.issued", "family_id": family})
		granted := w.grant("read").is(200)
		other := pairIn(granted)
		otherFamily := familyOf(t, api, other.access)
		l.gains(granted, "agent", fields{"type": "token.issued", "family_id": otherFamily})

		refreshed := w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).is(200)
		l.gains(refreshed, "agent", fields{"type": "token.refreshed", "family_id": family})
		renewed := w.renew(other.refresh).is(200)
		l.gains(renewed, "agent", fields{"type": "token.refreshed", "family_id": otherFamily})

		reused := w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).is(401)
		l.gains(reused, "agent", fields{"type": "token.reuse_detected", "family_id": family})
		w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).is(401)
		l.gainsNothing("a reuse of what is revoked")

		rotated = w.post("/v1/agents/"+w.agent.id+"/secret/rotate", fields{"revoke_families": true}, asKey(w.key)).is(200)
		w.agent.secret = rotated.text("secret")
		if got := typesOf(l.unread()); got != "agent.secret_rotated agent.families_revoked" {
			t.Errorf("a rotation that revokes the families leaves %s", got)
		}
		ending := w.exchange()
		l.unread()
		endIt := func() *response {
			return w.delete("/v1/agents/"+w.agent.id+"/families/"+ending.family(), asKey(w.key)).is(200)
		}
		l.gains(endIt(), "api_key", fields{"type": "token.revoked", "family_id": ending.family()})
		endIt()
		l.gainsNothing("the second revocation of a family")

		own := w.exchange()
		l.unread()
		end := func() *response {
			return w.post("/v1/auth/revoke", fields{"refresh_token": own.refresh}, asAgent(own.access)).is(200)
		}
		l.gains(end(), "agent", fields{"type": "token.revoked", "family_id": familyOf(t, api, own.access)})
		end()
		l.gainsNothing("the second revocation of a token")
		granted = w.grant("read").is(200)
		l.unread()
		last := pairIn(granted)
		revoked := w.postForm("/oauth2/revoke", form("token", last.refresh), byBasic(w.agent)).is(200)
		l.gains(revoked, "agent", fields{"type": "token.revoked", "family_id": last.family()})

		gone := w.delete("/v1/agents/"+w.agent.id, asKey(w.key)).is(200)
		l.gains(gone, "api_key", fields{"type": "agent.revoked"})
		w.revoke()
		l.gainsNothing("the second revocation of an agent")
	})
}

// valueThreshold is the event of a threshold of max_value_usd, actionThreshold of max_actions.
func valueThreshold(session string, percent int, value, of string) fields {
	return fields{"type": "budget.threshold", "session_id": session, "data": map[string]any{"budget": "session", "limit": "max_value_usd",
		"threshold": num(percent), "value_usd": num(value), "max_value_usd": num(of)}}
}

func actionThreshold(session string, percent, count, of int) fields {
	return fields{"type": "budget.threshold", "session_id": session, "data": map[string]any{"budget": "session", "limit": "max_actions",
		"threshold": num(percent), "action_count": num(count), "max_actions": num(of)}}
}

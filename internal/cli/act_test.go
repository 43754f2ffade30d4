package cli_test

import (
	"strings"
	"testing"
)

// actor is a terminal with the credential of an agent that has a session.
func actor(t *testing.T, scopes ...string) (organization, agent *terminal, session string) {
	t.Helper()
	organization = ofOrganization(t)
	id, secret := organization.newAgent(scopes...)
	session = organization.object("session", "create", id, "--max-actions", "5", "--max-value-usd", "1")["id"].(string)
	agent = newTerminal(t)
	agent.env["REMIT_AGENT"], agent.env["REMIT_SECRET"] = id, secret
	return organization, agent, session
}

func TestChargeCountsOnceForEachIdempotencyKey(t *testing.T) {
	t.Parallel()
	organization, agent, session := actor(t, "pay")
	for _, s := range []*terminal{organization, agent} {
		for range 2 {
			s.good("charge", session, "--value-usd", "0.25", "--action-type", "llm.call", "--idempotency-key", "step-1")
		}
	}
	has(t, agent.good("charge", session, "--count", "2", "--scope", "pay").stdout,
		`^ACTIONS +4 of 5$`, `^VALUE +0.5 of 1 USD$`, `^REMAINING +1 actions, 0.5 USD$`)
	for _, s := range []*terminal{organization, agent} {
		s.fails(exitFailed, "^remit: session_limit_reached", "charge", session, "--value-usd", "0.75")
	}
}

func TestTransactionCommands(t *testing.T) {
	t.Parallel()
	organization, agent, session := actor(t, "transactions:rollback")
	begun := agent.object("transaction", "begin", session, "--action-type", "refund", "--value-usd", "0.5",
		"--pre-state", `{"balance":10}`, "--expires-in", "1d")
	id := begun["id"].(string)
	has(t, agent.good("transaction", "show", id).stdout, `^STATUS +pending$`, `^HELD +0.5 USD$`, `^PRE-STATE +{"balance":10}$`)
	has(t, organization.good("session", "show", session).stdout, `^VALUE    0 of 1 USD$`, `^HELD     0.5 USD$`)
	has(t, agent.good("transaction", "commit", id, "--value-usd", "0.25").stdout, `^STATUS +committed$`, `^VALUE +0.25 USD$`)
	has(t, organization.good("transaction", "list", "--session", session).stdout, `^`+id+` +`+session+` +committed +refund +0.25 USD`)
	has(t, organization.good("transaction", "rollback", id, "--reason", "wrong customer").stdout,
		`^STATUS +rolled_back$`, `^REASON +wrong customer$`, `^PRE-STATE +{"balance":10}$`)
	organization.fails(exitFailed, "^remit: no agent: set REMIT_AGENT", "transaction", "begin", session, "--action-type", "x")
}

func TestEventsEndWithTheLastOrFollow(t *testing.T) {
	t.Parallel()
	organization, agent, session := actor(t)
	id := agent.env["REMIT_AGENT"]
	has(t, organization.good("events", id).stdout, `^OCCURRED +TYPE`, `agent\.created +api_key`, `session\.created +api_key +`+session)
	trail := document[[]map[string]any](organization.good("events", id, "--json"))
	last := trail[len(trail)-1]["id"].(string)
	if rest := document[[]map[string]any](organization.good("events", id, "--json", "--after", last)); len(rest) != 0 {
		t.Errorf("after the last there is %v", rest)
	}
	for line, says := range map[string]string{
		"events " + session: "not_found", "events --after " + last: "--after is a seq", "events " + id + " --types session.ended": "name no agent",
	} {
		organization.fails(exitFailed, says, strings.Fields(line)...)
	}
	has(t, agent.good("events", "--after", last).stdout, `token\.issued +agent`)
	agent.fails(exitFailed, "an agent can read only its own events", "events", session)

	following := organization.open(200, "events", id, "--follow", "--after", last, "--json")
	organization.good("session", "end", session)
	await(t, following.written, func() bool { return strings.Contains(following.written(), `"type":"session.ended"`) })
	if strings.Contains(following.written(), "agent.created") {
		t.Errorf("it does not start after the event:\n%s", following.written())
	}
}

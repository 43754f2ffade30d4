package cli_test

import (
	"regexp"
	"strings"
	"testing"
)

func TestAKeyIsCreatedWithARoleRotatedAndRevoked(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	made := s.good("key", "create", "dashboard", "--role", "viewer", "--expires-in", "30d")
	has(t, made.stdout, `^NAME +dashboard$`, `^ROLE +viewer$`, `^EXPIRES +\S+Z$`, `^API KEY +rmk_\S+$`)
	has(t, made.stderr, `^remit: the API key is shown only once`)
	id, key := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(made.stdout), regexp.MustCompile(`rmk_\S+`).FindString(made.stdout)
	viewer := s.with(t, map[string]string{"REMIT_API_KEY": key})
	list := viewer.good("key", "list").stdout
	has(t, list, `^ID +NAME +ROLE +ENDS IN +CREATED +EXPIRES +LAST USED$`, `^`+id+`  dashboard  viewer  …`+regexp.QuoteMeta(key[len(key)-4:])+` `,
		`first key  admin   .* never  `)
	if strings.Contains(list, "rmk_") {
		t.Errorf("a key is listed: %s", list)
	}
	rotated := s.object("key", "rotate", id, "--grace", "0")
	viewer.fails(exitFailed, "^remit: invalid_api_key", "key", "list")
	viewer.env["REMIT_API_KEY"] = rotated["api_key"].(string)
	keys := document[[]map[string]any](viewer.good("key", "list", "--json"))
	if len(keys) != 2 || keys[0]["id"] != rotated["id"] || keys[1]["expires_at"] != nil || keys[1]["api_key"] != nil {
		t.Errorf("%v", keys)
	}
	has(t, s.good("key", "revoke", id).stdout, `^KEY +`+id+`$`, `^STATUS +revoked$`)
	viewer.fails(exitFailed, "", "key", "list")
}

func TestThresholdsAreSetShownAndTold(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	session := s.newSession("--max-actions", "4", "--thresholds", "75,50")
	has(t, s.good("session", "show", session).stdout, `^THRESHOLDS +50%, 75%$`)
	s.charge(session, "--count", "2")
	w := s.open(200, "events", "--follow", "--types", "budget.threshold")
	w.shows(`"threshold":50`)
	has(t, s.good("session", "update", session, "--thresholds", "none").stdout, `^THRESHOLDS +-$`)
	if shown := s.good("session", "update", session, "--thresholds", "80,100").stdout; strings.Contains(shown, "THRESHOLDS") {
		t.Errorf("the default is shown: %s", shown)
	}
	s.fails(exitUsage, "must be percents from 1 to 100", "session", "update", session, "--thresholds", "101")
}

func TestUsageIsATableADocumentOrCSV(t *testing.T) {
	t.Parallel()
	organization, agent, session := actor(t)
	organization.charge(session, "--action-type", "=llm", "--value-usd", "0.25", "--count", "2")
	organization.charge(session, "--value-usd", "0.5")
	for _, s := range []*terminal{organization, agent} {
		has(t, s.good("session", "usage", session).stdout, `^ACTION TYPE  ACTIONS  VALUE$`, `^=llm         2        0\.25 USD$`, `^-            1        0\.5 USD$`)
	}
	if got := organization.good("session", "usage", session, "--json").stdout; got !=
		`[{"action_count":2,"action_type":"=llm","value_usd":0.25},{"action_count":1,"action_type":null,"value_usd":0.5}]`+"\n" {
		t.Errorf("as JSON %s", got)
	}
	id := agent.env["REMIT_AGENT"]
	has(t, organization.good("usage").stdout, `^DAY         ACTIONS  VALUE$`, `^\d{4}-\d\d-\d\d  3        0\.75 USD$`)
	has(t, organization.good("usage", id, "--group-by", "agent,session").stdout, `^AGENT +SESSION +ACTIONS +VALUE$`, `^`+id+`  `+session+`  3        0\.75 USD$`)
	csv := organization.good("usage", "--csv", "--group-by", "action_type").stdout
	wantEqual(t, "as CSV", csv, "action_type,action_count,value_usd\r\n,1,0.5\r\n'=llm,2,0.25\r\n")
	wantEqual(t, "a month without charges", organization.good("usage", "--from", "2026-01-01", "--to", "2026-01-31", "--json").stdout, "[]\n")
}

func TestEventsOfAllAgentsEndWithTheLastOrFollow(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	session := s.newSession()
	following := s.open(200, "events", "--follow", "--types", "session.created,session.ended", "--json")
	await(t, following.written, func() bool { return strings.Contains(following.written(), session) })
	s.good("session", "end", session)
	await(t, following.written, func() bool { return strings.Contains(following.written(), `"type":"session.ended"`) })
	if text := following.written(); strings.Contains(text, "agent.created") || strings.Count(text, "session.created") != 1 {
		t.Errorf("it prints other types, or those so far twice:\n%s", text)
	}
	has(t, s.good("events").stdout, `^SEQ +OCCURRED +TYPE +AGENT +ACTOR +SESSION +DATA$`, `^1 .* agent\.created +\S+  api_key  -`, `^3 .* session\.ended .* `+session+` `)
	all := document[[]map[string]any](s.good("events", "--json", "--after", "1"))
	if len(all) != 2 || all[0]["seq"] != 2.0 || all[0]["previous_hash"] == nil {
		t.Errorf("after the first: %v", all)
	}
}

func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	const receiver = "https://127.0.0.1/remit" // to which the service refuses to connect
	made := s.good("webhook", "create", receiver, "--types", "session.ended,session.expired", "--description", "on call")
	has(t, made.stdout, `^URL +`+receiver+`$`, `^TYPES +session\.ended,session\.expired$`, `^DESCRIPTION +on call$`, `^SECRET +whsec_\S+$`)
	has(t, made.stderr, `^remit: the webhook's secret is shown only once`)
	id := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(made.stdout)
	has(t, s.good("webhook", "list").stdout, `^ID +URL +TYPES +CONFIRMED +FAILING SINCE +CREATED$`, `^`+id+`  `+receiver+`  session\.ended,session\.expired  - `)
	has(t, s.good("webhook", "update", id, "--types", "session.created", "--types", "session.ended").stdout, `^TYPES +session.created,session.ended$`)
	has(t, s.good("webhook", "update", id, "--types=", "--description=").stdout, `^TYPES +all$`)
	if shown := s.object("webhook", "show", id); shown["description"] != "" || len(shown["types"].([]any)) != 0 || shown["secret"] != nil {
		t.Errorf("%v", shown)
	}
	has(t, s.good("webhook", "rotate", id).stdout, `^SECRET +whsec_\S+$`, `^PREVIOUS ENDS +\S+Z$`)
	sent := s.object("webhook", "test", id)
	if sent["type"] != "webhook.test" || sent["event_seq"] != nil {
		t.Errorf("%v", sent)
	}
	delivery := sent["id"].(string)
	has(t, s.good("webhook", "retry", id, delivery).stdout, `^ID +`+delivery+`$`, `^TYPE +webhook\.test$`)
	has(t, s.good("webhook", "deliveries", id, "--status", "pending").stdout, `^ID +SEQ +TYPE +STATUS +ATTEMPTS +RESPONSE +CREATED +NEXT ATTEMPT +ERROR$`, `^`+delivery+`  -    webhook\.test  pending `)
	has(t, s.good("webhook", "delete", id).stdout, `^WEBHOOK +`+id+`$`, `^STATUS +deleted$`)
	wantEqual(t, "webhooks that are left", s.good("webhook", "list", "--json").stdout, "[]\n")
}

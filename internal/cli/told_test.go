package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"remit/client"
	"remit/money"
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
	if r := viewer.run("agent", "create", "scout"); r.exit != exitFailed || !strings.HasPrefix(r.stderr, "remit: insufficient_role: ") {
		t.Errorf("a viewer creates an agent: exit %d: %s", r.exit, r.stderr)
	}
	rotated := s.object("key", "rotate", id, "--grace", "0")
	if r := viewer.run("key", "list"); r.exit != exitFailed || !strings.HasPrefix(r.stderr, "remit: invalid_api_key") {
		t.Errorf("the old key: exit %d: %s", r.exit, r.stderr)
	}
	viewer.env["REMIT_API_KEY"] = rotated["api_key"].(string)
	keys := document[[]map[string]any](viewer.good("key", "list", "--json"))
	if len(keys) != 2 || keys[0]["id"] != rotated["id"] || keys[1]["expires_at"] != nil || keys[1]["api_key"] != nil {
		t.Errorf("%v", keys)
	}
	has(t, s.good("key", "revoke", id).stdout, `^KEY +`+id+`$`, `^STATUS +revoked$`)
	if r := viewer.run("key", "list"); r.exit != exitFailed {
		t.Errorf("a revoked key: %s", r.stdout)
	}
	if r := s.run("key", "revoke", keys[1]["id"].(string)); r.exit != exitFailed || !strings.HasPrefix(r.stderr, "remit: last_admin_key: ") {
		t.Errorf("the last admin key: exit %d: %s", r.exit, r.stderr)
	}
}

func TestThresholdsAreSetShownAndTold(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	session := s.newSession("--max-actions", "4", "--thresholds", "75,50")
	has(t, s.good("session", "show", session).stdout, `^THRESHOLDS +50%, 75%$`)
	s.charge(session, client.Charge{Count: 2})
	w := s.open(200, "events", "--follow", "--types", "budget.threshold")
	w.shows(`"threshold":50`)
	has(t, s.good("session", "update", session, "--thresholds", "none").stdout, `^THRESHOLDS +-$`)
	if shown := s.good("session", "update", session, "--thresholds", "80,100").stdout; strings.Contains(shown, "THRESHOLDS") {
		t.Errorf("the default is shown: %s", shown)
	}
	if r := s.run("session", "update", session, "--thresholds", "101"); r.exit != exitUsage || !strings.Contains(r.stderr, "must be percents from 1 to 100") {
		t.Errorf("exit %d: %s", r.exit, r.stderr)
	}
}

func TestUsageIsATableADocumentOrCSV(t *testing.T) {
	t.Parallel()
	organization, agent, session := actor(t)
	organization.charge(session, client.Charge{ActionType: "=llm", Value: money.USD / 4, Count: 2})
	organization.charge(session, client.Charge{Value: money.USD / 2})
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
	if got := organization.good("usage", "--csv", "--group-by", "action_type").stdout; got != "action_type,action_count,value_usd\r\n,1,0.5\r\n'=llm,2,0.25\r\n" {
		t.Errorf("as CSV %q", got)
	}
	if got := organization.good("usage", "--from", "2026-01-01", "--to", "2026-01-31", "--json").stdout; got != "[]\n" {
		t.Errorf("a month without charges: %s", got)
	}
}

func TestEventsOfAllAgentsEndWithTheLastOrFollow(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	session := s.newSession()
	following := s.open(200, "events", "--follow", "--types", "session.created,session.ended", "--json")
	await(t, following.written, func() bool { return strings.Contains(following.written(), session) })
	s.good("session", "end", session)
	await(t, following.written, func() bool { return strings.Contains(following.written(), `"type":"session.ended"`) })
	if strings.Contains(following.written(), "agent.created") {
		t.Errorf("it prints other types:\n%s", following.written())
	}
	has(t, s.good("events").stdout, `^SEQ +OCCURRED +TYPE +AGENT +ACTOR +SESSION +DATA$`, `^1 .* agent\.created +\S+  api_key  -`, `^3 .* session\.ended .* `+session+` `)
	all := document[[]map[string]any](s.good("events", "--json", "--after", "1"))
	if len(all) != 2 || all[0]["seq"] != 2.0 || all[0]["previous_hash"] == nil {
		t.Errorf("after the first: %v", all)
	}
}

// What follows goes on when the service is back, and repeats nothing.
func TestFollowingGoesOnAfterABreak(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	var refused atomic.Int64
	asked := make(chan string, 1000)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after := r.URL.Query().Get("after")
		switch asked <- after + " " + r.URL.Query().Get("wait"); {
		case away.Load() && refused.Add(1) <= 6: // more than one call tries
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"status":503,"code":"unavailable","detail":"words","request_id":"r-1"}`)
		case after == "4": // those so far
			fmt.Fprintf(w, `[%s,%s]`, feedLine(5, "session.created"), feedLine(6, "session.ended"))
		case after == "6" && refused.Load() > 0:
			fmt.Fprintf(w, `[%s]`, feedLine(7, "agent.revoked"))
		default:
			if r.URL.Query().Get("wait") != "0" {
				away.Store(true)
			}
			io.WriteString(w, `[]`)
		}
	}))
	t.Cleanup(service.Close)
	s := newTerminal(t)
	s.env["REMIT_ADDR"], s.env["REMIT_API_KEY"] = service.URL, "rmk_1"
	w := s.open(200, "events", "--follow", "--after", "4")
	w.shows("agent.revoked")
	has(t, w.screen(), `^5  2026-11-21T09:19:32Z  session\.created  a1  api_key  - *$`, `^6 .*session\.ended `, `^7 .*agent\.revoked `)
	if n := refused.Load(); n < 6 {
		t.Errorf("it was refused %d times", n)
	}
	if first := <-asked; first != "4 0" {
		t.Errorf("it first asks for %s", first)
	}
}

func feedLine(seq int, kind string) string {
	return fmt.Sprintf(`{"id":"a1:1-%d","type":%q,"occurred_at":%s,"agent_id":"a1","actor":{"type":"api_key","id":"k1"},"seq":%d,"previous_hash":"5f"}`,
		seq, kind, when, seq)
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
	if none := s.good("webhook", "list", "--json").stdout; none != "[]\n" {
		t.Errorf("none are left: %s", none)
	}
}

func TestADeliveryShowsWhyItFailed(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	has(t, f.good("webhook", "deliveries", "w1").stdout, `^d1  42   session\.ended  dead    7         503       2026-11-21T09:19:32Z  -             no: \\x1b\[2J$`)
	has(t, f.good("webhook", "retry", "w1", "d1").stdout, `^SEQ +42$`, `^RESPONSE +503$`, `^ERROR +no: \\x1b\[2J$`, `^TOOK +1\.031s$`, `^LAST ATTEMPT +2026-11-21T09:19:32Z$`)
	if sent := f.last(); sent != "POST /v1/webhooks/w1/deliveries/d1/retry" {
		t.Errorf("sent %s", sent)
	}
}

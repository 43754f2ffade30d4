package server_test

import (
	"strings"
	"testing"
	"time"
)

func TestUsageIsReportedInJSONAndCSV(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		created := w.post("/v1/sessions", fields{"agent_id": w.agent.id}, asKey(w.key)).is(201)
		path := "/v1/sessions/" + created.text("id")
		for _, charge := range []fields{
			{"action_type": "llm.call", "value_usd": 0.37}, {"value_usd": 1.5}, {"action_type": `=HYPERLINK("x")`, "value_usd": 0},
		} {
			w.post(path+"/actions", charge, asKey(w.key)).is(200)
		}
		for _, alias := range []string{path + "/usage", strings.TrimPrefix(path, "/v1") + "/usage"} {
			lines := w.get(alias, asKey(w.key)).is(200).array()
			if len(lines) != 3 || lines[1]["action_type"] != "llm.call" || lines[2]["action_type"] != nil {
				t.Errorf("%s is %v", alias, lines)
			}
		}
		today := time.Now().UTC().Format(time.DateOnly)
		lines := w.get("/v1/usage", asKey(w.key)).is(200).array()
		if len(lines) != 1 || lines[0]["day"] != today || len(lines[0]) != 3 {
			t.Errorf("by day %v", lines)
		}
		report := w.get("/v1/usage?group_by=day,action_type&format=csv&from="+today+"&to="+today, asKey(w.key)).is(200)
		want := "day,action_type,action_count,value_usd\r\n" + today + ",,1,1.5\r\n" + today + `,"'=HYPERLINK(""x"")",1,0` + "\r\n" + today + ",llm.call,1,0.37\r\n"
		wantEqual(t, "the table", string(report.body), want)
		wantEqual(t, "its type", report.header.Get("Content-Type"), "text/csv; charset=utf-8; header=present")
	})
}

func TestAQueryOfUsageIsChecked(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		for query, field := range map[string]string{
			"from=2026-13-01": "from", "from=yesterday": "from", "from=1969-12-31": "from", "to=": "to",
			"from=2026-02-02&to=2026-02-01": "to", "from=2025-01-01&to=2026-02-05": "to", "group_by=month": "group_by",
			"group_by=": "group_by", "group_by=day,day": "group_by", "group_by=day,agent,session": "group_by",
			"agent_id=me": "agent_id", "format=xml": "format", "limit=3": "limit", "format=csv&format=csv": "format",
		} {
			w.get("/v1/usage?"+query, asKey(w.key)).invalid(field)
		}
		w.get("/v1/usage?from=2025-01-01&to=2026-02-04", asKey(w.key)).is(200)
		w.get("/v1/usage", asAgent(w.exchange().access)).is(401)
		w.get("/v1/usage?agent_id=01a1fd30-7159-7864-bfd3-2670b8006c57", asKey(w.key)).is(404)
	})
}

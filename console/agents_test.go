package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAgentsAreFoundByNameAndIDAndSortedBySpend(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := map[string]string{}
	for i, name := range []string{"Alpha", "beta", "gamma ray"} {
		ids[name] = w.asAdmin("POST", "/v1/agents", map[string]any{"name": name, "scopes": []string{}})["id"].(string)
		session := w.newSession(ids[name], nil)
		w.asAdmin("POST", "/v1/sessions/"+session+"/actions", map[string]any{"value_usd": float64(i) + 0.000001})
	}
	b := w.as(t, viewer)
	w.addedUp(b)
	shown := func(path string) string {
		var names []string
		for _, to := range b.get(path).want(200).links() {
			for name, id := range ids {
				if to == agents+"/"+id {
					names = append(names, name)
				}
			}
		}
		return strings.Join(names, ",")
	}
	for path, want := range map[string]string{
		agents:                                    "gamma ray,beta,Alpha",
		agents + "?sort=name":                     "Alpha,beta,gamma ray",
		agents + "?sort=new":                      "gamma ray,beta,Alpha",
		agents + "?q=BETA":                        "beta",
		agents + "?q=" + ids["Alpha"][24:]:        "Alpha",
		agents + "?q=a&sort=name":                 "Alpha,beta,gamma ray",
		agents + "?state=suspended":               "",
		agents + "?q=unknown":                     "",
		agents + "?q=%3Cscript%3E&page=9&state=x": "",
	} {
		if got := shown(path); got != want {
			t.Errorf("%s shows %q, want %q", path, got, want)
		}
	}
	b.get(agents).says("$2.000001", "$0.000001", "3 agents")
	b.get(agents + "?q=unknown").says("No agent matches")
}

func TestAListOfAgentsIsPaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	for i := range agentsPerPage + 1 {
		w.asAdmin("POST", "/v1/agents", map[string]any{"name": fmt.Sprintf("agent %03d", i), "scopes": []string{}})
	}
	b := w.as(t, viewer)
	first := b.get(agents+"?sort=name").says("agent 000", "agent 049", "51 agents").saysNot("agent 050")
	next := agents + "?page=1&sort=name"
	if !slices.Contains(first.links(), next) {
		t.Fatalf("the links are %v", first.links())
	}
	second := b.get(next).says("agent 050").saysNot("agent 049")
	if !slices.Contains(second.links(), agents+"?page=0&sort=name") {
		t.Errorf("the links are %v", second.links())
	}
}

func TestWithoutAgentsTheListSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.as(t, viewer).get(agents).says("There is no agent yet", "remit agent create")
}

func TestASecretIsShownOnceAndInNoAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	b := w.as(t, admin)
	sent := b.get(agents).form(agents)
	sent.Set("name", "scout")
	sent.Set("scopes", "read, write")
	created := b.ask(http.MethodPost, agents, sent)
	if strings.Contains(created.header.Get("Location")+created.text, "rms_") {
		t.Error("the redirect holds the secret")
	}
	page := b.follow(created).says("The agent was created", "shown only now", "read", "write")
	secret := ""
	for input := range page.elements("input") {
		if value := attribute(input, "value"); strings.HasPrefix(value, "rms_") {
			secret = value
		}
	}
	path := created.header.Get("Location")
	w.exchange(strings.TrimPrefix(path, agents+"/"), secret)
	if strings.Contains(b.get(path).text, "rms_") {
		t.Error("it is shown again")
	}
	b.ask(http.MethodPost, agents, sent) // the same form once more, as by a double click
	if listed := b.get(agents).words(); strings.Count(listed, "scout") != 1 {
		t.Errorf("the same form created two: %s", listed)
	}
}

func TestASecretIsRotatedOnlyWhenTyped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	agent := w.sample()["agent"]
	b := w.as(t, admin)
	path := agents + "/" + agent
	b.send(b.get(path), path+"/rotate-secret", "confirm", "yes").says("The secret was not rotated", "type rotate")
	page := b.send(b.get(path), path+"/rotate-secret", "confirm", "Rotate ")
	if !strings.Contains(page.says("The agent has a new secret").text, "rms_") {
		t.Error("the new secret is not shown")
	}
}

func TestAnAgentIsSuspendedResumedAndRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	agent := w.sample()["agent"]
	b := w.as(t, operator)
	path := agents + "/" + agent
	b.send(b.get(path), path+"/suspend", "reason", "it loops").says("The agent is suspended", "Suspended since", "it loops")
	if got := w.asAdmin("GET", "/v1/agents/"+agent, nil); got["suspension_reason"] != "it loops" {
		t.Errorf("the agent is %v", got)
	}
	b.get(agents + "?state=suspended").says("scout")
	b.send(b.get(path), path+"/resume").says("The agent is resumed")
	b.send(b.get(path), path+"/revoke").says("The agent was not revoked. To confirm it, type revoke.")
	page := b.send(b.get(path), path+"/revoke", "confirm", "revoke").says("The agent is revoked")
	for _, below := range []string{"/suspend", "/revoke", "/rotate-secret"} {
		if page.hasForm(path + below) {
			t.Errorf("a revoked agent's page has a form for %s", below)
		}
	}
	got := b.follow(b.post(path+"/suspend", "csrf", b.csrf(), "back", path))
	got.says("The agent was not suspended.", "revoked")
}

func TestAnAgentsLimitsAreSetAndShownExactly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := w.sample()
	b := w.as(t, admin)
	path := agents + "/" + ids["agent"]
	page := b.send(b.get(path), path+"/limits", "max_value_usd_per_day", "$12.345678", "max_actions_per_minute", "", "max_open_sessions", "1000")
	page.says("The limits are set", "$12.345678", "1,000", "0 of 1,000")
	b.send(b.get(path), path+"/limits", "max_value_usd_per_day", "12.3456789").says("The limits were not changed", "at most 6 decimals")
	b.send(b.get(path), path+"/limits", "max_value_usd_per_day", "").saysNot("$12.345678")
	w.as(t, viewer).whole(path).want(200).says("Spent today (UTC) $1.25", "llm.call", "$1.25")
}

func TestATokenFamilyIsRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := w.sample()
	b := w.as(t, operator)
	path := agents + "/" + ids["agent"]
	b.send(b.get(path), path+"/families/"+ids["family"]+"/revoke").says("The token family is revoked", "The agent has no tokens")
}

func TestAnUnknownOrForeignAgentIsNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	other := newWorld(t, settings{redis: w.mini})
	foreign := other.sample()["agent"]
	for _, id := range []string{foreign, "01a205bd-354f-7426-a0a2-d7a2561aa517", "x"} {
		if got := w.as(t, admin).get(agents + "/" + id); got.status != 404 && got.status != 400 {
			t.Errorf("%s: %d", id, got.status)
		}
	}
}

func TestTheLatestEventsComeFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	agent := w.sample()["agent"]
	for range shownEvents {
		w.asAdmin("POST", "/v1/agents/"+agent+"/suspend", map[string]any{})
		w.asAdmin("POST", "/v1/agents/"+agent+"/resume", map[string]any{})
	}
	b := w.as(t, viewer)
	a := api{host: w.console.host, key: w.keys[viewer]}
	found := must(a.latest(agent, time.Now(), func(eventRow) bool { return true }))(t)
	if len(found) != shownEvents || found[0].Type != "agent.resumed" || found[1].Type != "agent.suspended" || found[0].OccurredAt.Before(found[29].OccurredAt) {
		t.Errorf("%d events, first %+v", len(found), found[0])
	}
	b.get(agents + "/" + agent).says("agent.resumed").saysNot("agent.created")
}

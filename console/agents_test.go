package console

import (
	"net/http"
	"strings"
	"testing"
)

func TestAgentsAreFoundByNameAndIDAndSortedBySpend(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := map[string]string{}
	for i, name := range []string{"Alpha", "beta", "gamma ray"} {
		ids[name] = w.newAgent(name)
		session := w.newSession(ids[name], nil)
		w.asAdmin("POST", "/v1/sessions/"+session+"/actions", map[string]any{"value_usd": float64(i) + 0.000001})
	}
	w.asAdmin("POST", "/v1/agents/"+ids["beta"]+"/suspend", map[string]any{})
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
		agents + "?state=suspended":               "beta",
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

func TestASecretIsShownOnceAndInNoAddress(t *testing.T) {
	t.Parallel()
	w, b := visited(t, admin)
	sent := b.get(agents).form(agents)
	sent.Set("name", "scout")
	sent.Set("scopes", "read, write")
	created := b.ask(http.MethodPost, agents, sent)
	if strings.Contains(created.header.Get("Location")+created.text, "rms_") {
		t.Error("the redirect holds the secret")
	}
	page := b.follow(created).says("The agent was created", "shown only now", "read", "write")
	path := created.header.Get("Location")
	w.exchange(strings.TrimPrefix(path, agents+"/"), page.secret("rms_"))
	if strings.Contains(b.get(path).text, "rms_") {
		t.Error("it is shown again")
	}
	b.ask(http.MethodPost, agents, sent) // the same form once more, as by a double click
	if listed := b.get(agents).words(); strings.Count(listed, "scout") != 1 {
		t.Errorf("the same form created two: %s", listed)
	}
}

func TestARevokedAgentAndAnEndedSessionOfferNoChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := w.sample()
	w.asAdmin("POST", "/v1/agents/"+ids["agent"]+"/revoke", map[string]any{})
	for _, path := range []string{agents + "/" + ids["agent"], sessions + "/" + ids["session"]} {
		for form := range w.as(t, admin).get(path).want(200).says("revoked").elements("form") {
			if action := attribute(form, "action"); strings.HasPrefix(action, path+"/") {
				t.Errorf("a form for %s", action)
			}
		}
	}
}

func TestAnAgentsLimitIsRemovedByAnEmptyField(t *testing.T) {
	t.Parallel()
	_, b, ids := sampled(t, admin)
	path := agents + "/" + ids["agent"]
	b.send(b.get(path), path+"/limits", "max_value_usd_per_day", "$12.345678").says("$12.345678")
	b.send(b.get(path), path+"/limits", "max_value_usd_per_day", "").says("The limits are set").saysNot("$12.345678")
	b.whole(path).want(200).says("Spent today (UTC) $1.25", "llm.call", "$1.25")
}

package console

import (
	"strings"
	"testing"
)

func TestAgentsAreFoundByNameAndIDAndSortedBySpend(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	ids := map[string]string{}
	for i, name := range []string{"Alpha", "beta", "gamma ray"} {
		ids[name] = w.newAgent(name)
		session := w.newSession(ids[name], nil)
		w.asAdmin("POST", "/v1/sessions/"+session+"/actions", map[string]any{"value_usd": float64(i) + 0.000001})
	}
	w.asAdmin("POST", "/v1/agents/"+ids["beta"]+"/suspend", map[string]any{})
	b.whole(agents)
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
		wantEqual(t, path, strings.Join(b.get(path).want(200).rows("Name"), ","), want)
	}
	b.get(agents).says("$2.000001", "$0.000001", "3 agents")
}

func TestARevokedAgentAndAnEndedSessionOfferNoChange(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, admin)
	w.asAdmin("POST", "/v1/agents/"+ids["agent"]+"/revoke", map[string]any{})
	for _, path := range []string{ids.path(agent), ids.path(session)} {
		for form := range b.get(path).want(200).says("revoked").elements("form") {
			if action := attribute(form, "action"); strings.HasPrefix(action, path+"/") {
				t.Errorf("a form for %s", action)
			}
		}
	}
}

func TestAnEmptyFieldRemovesALimitOfAnAgentAndRaisesNoneOfASession(t *testing.T) {
	t.Parallel()
	_, b, ids := sampled(t, admin)
	path := ids.path(agent)
	b.send(b.get(path), path+"/limits", "max_value_usd_per_day", "$12.345678").says("$12.345678")
	b.send(b.get(path), path+"/limits", "max_value_usd_per_day", "").says("The limits are set").saysNot("$12.345678")
	b.whole(path).want(200).says("Spent today (UTC) $1.25", "llm.call", "$1.25")
	b.send(b.get(ids.path(session)), ids.path(session+"/top-up")).says("The limits were not raised", "Say what to add")
}

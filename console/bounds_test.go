package console

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"remit/client"
	"remit/money"
)

func TestStatesAreIndentedExactlyAndNotToMegabytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"n":12345678901234567890}`: "12345678901234567890", `{"n":0.1000}`: "0.1000", ``: "{}", `{"a":"<b>"}`: "<b>",
	} {
		if got := indented([]byte(text)); !strings.Contains(got, want) {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
	nested := strings.Repeat("[", 29) + strings.Repeat("1,", 30_000) + "1" + strings.Repeat("]", 29)
	if got := indented([]byte(nested)); len(got) > len(nested) {
		t.Errorf("%d bytes become %d", len(nested), len(got))
	}
	small := strings.Repeat("[", 29) + strings.Repeat("1,", 8000) + "1" + strings.Repeat("]", 29)
	if got := indented([]byte(small)); len(got) > 4*16<<10 {
		t.Errorf("%d bytes become %d", len(small), len(got))
	}
	if got := excerpt(indented(head([]byte(nested)))); len(got) > 2100 {
		t.Errorf("in a list it has %d bytes", len(got))
	}
}

func TestAMessageOfAngleBracketsFitsIntoACookie(t *testing.T) {
	t.Parallel()
	w, b := visited(t, operator)
	path := agents + "/" + w.sample()["agent"]
	got := b.follow(b.post(path+"/suspend", "csrf", b.csrf(), "back", budget, "reason", strings.Repeat("<", 501)))
	got.says("The agent was not suspended.", "500 characters")
	for _, message := range []string{strings.Repeat("<", 5000), strings.Repeat("ä\"\\\n", 2000), strings.Repeat("\x01", 5000), "short"} {
		ctx := new(fasthttp.RequestCtx)
		ctx.Init(&fasthttp.Request{}, nil, nil)
		must(0, w.console.setFlash(ctx, newSignIn("key", time.Now()), path, flash{Text: message, Secret: strings.Repeat("x", 100)}))(t)
		cookie := ctx.Response.Header.Peek("Set-Cookie")
		if len(cookie) > 4000 {
			t.Errorf("a message of %d bytes makes a cookie of %d", len(message), len(cookie))
		}
		sealed, _, _ := strings.Cut(strings.TrimPrefix(string(cookie), flashCookie+"="), ";")
		if text := must(w.console.host.OpenCookie(flashCookie, sealed))(t); !strings.Contains(string(text), `"secret":"xxx`) {
			t.Errorf("a message of %d bytes loses the secret", len(message))
		}
	}
	far := path + "?q=" + strings.Repeat("x", 5000)
	if to := b.post(path+"/suspend", "csrf", b.csrf(), "back", far, "reason", strings.Repeat("x", 501)).header.Get("Location"); len(to) > mostBack {
		t.Errorf("it comes back to an address of %d bytes", len(to))
	}
}

func TestViewersShareTheFleetAndChangeNothing(t *testing.T) {
	t.Parallel()
	row := func(n int, name string) agentRow { return agentRow{ID: idOf(n), Name: name, Status: statusActive} }
	rows := []agentRow{row(3, "A"), row(2, "b"), row(1, "C")}
	shared := fleet{Agents: &agentTable{}, sorting: new(sync.Mutex)}
	must(0, shared.Agents.add(rows))(t)
	shared.Spent = &spent{agents: must(agentsOf(map[string]spending{idOf(2): {Month: 5}}))(t)}
	if found := rowsOf(shared.find("", "", "")); found[0].ID != idOf(2) || found[0].Spent.Month != 5 {
		t.Errorf("%+v", found)
	}
	if found := rowsOf(shared.find("", "", "name")); found[0].Name != "A" || found[2].Name != "C" {
		t.Errorf("by name: %+v", found)
	}
	for order, a := range rowsOf(shared.find("", "", "new")) {
		if a.ID != rows[order].ID || a.Name != rows[order].Name {
			t.Errorf("a page changed what viewers share: %+v", a)
		}
	}
}

func TestAnEventRefreshesThePagesThatShowWhatItChanges(t *testing.T) {
	t.Parallel()
	shown := func() map[string]*watched { return map[string]*watched{"s": {}} }
	for name, test := range map[string]struct {
		view   viewing
		events map[string]urgency
	}{
		"a list of all":       {viewing{lists: true}, map[string]urgency{"session.created": urgent, "session.expired": urgent, "session.suspended": calm, "agent.revoked": urgent}},
		"a list of its agent": {viewing{lists: true, of: "a"}, map[string]urgency{"session.created": urgent, "session.ended": urgent}},
		"a list of another":   {viewing{lists: true, of: "b"}, map[string]urgency{"session.created": calm, "agent.revoked": calm}},
		"a part of a list":    {viewing{}, map[string]urgency{"session.created": calm}},
		"its agent's page":    {viewing{agent: "a"}, map[string]urgency{"session.created": urgent, "agent.suspended": urgent, "session.suspended": urgent}},
		"one that shows it":   {viewing{agent: "a", watched: shown()}, map[string]urgency{"session.suspended": calm, "session.ended": urgent}},
		"its own page":        {viewing{session: "s", watched: shown()}, map[string]urgency{"session.suspended": urgent, "transaction.begun": urgent}},
		"its parent's page":   {viewing{session: "p", watched: shown()}, map[string]urgency{"session.suspended": urgent, "session.ended": urgent}},
		"another's page":      {viewing{session: "p"}, map[string]urgency{"session.suspended": calm}},
		"the overview":        {viewing{about: aboutAll}, map[string]urgency{"agent.created": urgent, "session.more_requested": urgent, "transaction.begun": summed, "token.refreshed": calm}},
		"the list of agents":  {viewing{about: aboutAgents}, map[string]urgency{"agent.created": urgent, "session.created": calm}},
	} {
		test.view.wake = make(chan struct{}, 1)
		for kind, want := range test.events {
			test.view.changed = calm
			test.view.note(eventRow{Type: kind, AgentID: "a", SessionID: "s"})
			wantEqual(t, name+", "+kind, test.view.changed, want)
		}
	}
	_, b, _ := sampled(t, viewer)
	for path, want := range map[string]bool{sessions: true, sessions + "?status=completed": true, sessions + "?cursor=" + cursorBefore(time.Now()): false} {
		wantEqual(t, path+" is refreshed with new sessions", strings.Contains(b.get(path).liveOf(), "list=all"), want)
	}
}

func TestMoneyThatIsHeldForLongNeedsALook(t *testing.T) {
	t.Parallel()
	now := time.Now()
	begun := func(age, lives time.Duration, held money.MicroUSD) client.TransactionInfo {
		return client.TransactionInfo{ID: age.String(), ValueHeld: held, CreatedAt: now.Add(-age), ExpiresAt: now.Add(lives - age)}
	}
	pending := []client.TransactionInfo{begun(time.Minute, time.Hour, 5), begun(31*time.Minute, time.Hour, 5), begun(40*time.Minute, time.Hour, 0)}
	for i := range shownStuck + 2 {
		pending = append(pending, begun(50*time.Minute+time.Duration(i)*time.Second, time.Hour, 1))
	}
	var a attention
	a.readStuck(pending, now)
	if len(a.Stuck) != shownStuck || a.MoreStuck != 3 || a.Stuck[0].ID != (50*time.Minute+time.Duration(shownStuck+1)*time.Second).String() || a.None() {
		t.Errorf("%d and %d more, first %s", len(a.Stuck), a.MoreStuck, a.Stuck[0].ID)
	}
}

func TestTheLatestEventsOfABusyAgentComeFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{events: 10_000})
	ids := w.sample()
	session := "/v1/sessions/" + ids["session"]
	w.asAdmin("POST", session+"/suspend", map[string]any{})
	w.happen(ids["agent"], eventPages*100+50) // more events than are read from the oldest
	w.asAdmin("POST", session+"/resume", map[string]any{})
	a := api{host: w.console.host, key: w.keys[viewer]}
	all := must(a.latest(ids["agent"], time.Now(), func(eventRow) bool { return true }))(t)
	if len(all) != shownEvents || all[0].Type != "session.resumed" || all[1].Type != "agent.resumed" || all[2].Type != "agent.suspended" {
		t.Errorf("the first of %d are %s, %s and %s", len(all), all[0].Type, all[1].Type, all[2].Type)
	}
	for _, later := range []time.Duration{0, 30 * time.Second} { // in the last second, or among the many
		own := must(a.latest(ids["agent"], time.Now().Add(later), func(e eventRow) bool { return e.SessionID == ids["session"] }))(t)
		if len(own) == 0 || own[0].Type != "session.resumed" {
			t.Errorf("%s later there are %d of the session: %v", later, len(own), own)
		}
	}
}

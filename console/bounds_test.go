package console

import (
	"fmt"
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
		wantContains(t, text, indented([]byte(text)), want)
	}
	nested := strings.Repeat("[", 29) + strings.Repeat("1,", 30_000) + "1" + strings.Repeat("]", 29)
	wantAtMost(t, "the bytes of a large state", len(indented([]byte(nested))), len(nested))
	small := strings.Repeat("[", 29) + strings.Repeat("1,", 8000) + "1" + strings.Repeat("]", 29)
	wantAtMost(t, "the bytes of a small one", len(indented([]byte(small))), 4*16<<10)
	wantAtMost(t, "the bytes of one in a list", len(excerpt(indented(head([]byte(nested))))), 2100)
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
		wantAtMost(t, fmt.Sprint("the bytes of the cookie of a message of ", len(message)), len(cookie), 4000)
		sealed, _, _ := strings.Cut(strings.TrimPrefix(string(cookie), flashCookie+"="), ";")
		wantContains(t, "the cookie", string(must(w.console.host.OpenCookie(flashCookie, sealed))(t)), `"secret":"xxx`)
	}
	far := path + "?q=" + strings.Repeat("x", 5000)
	to := b.post(path+"/suspend", "csrf", b.csrf(), "back", far, "reason", strings.Repeat("x", 501)).header.Get("Location")
	wantAtMost(t, "the bytes of the address that it comes back to", len(to), mostBack)
}

func TestViewersShareTheFleetAndChangeNothing(t *testing.T) {
	t.Parallel()
	row := func(n int, name string) agentRow { return agentRow{ID: idOf(n), Name: name, Status: statusActive} }
	rows := []agentRow{row(3, "A"), row(2, "b"), row(1, "C")}
	shared := fleet{Agents: &agentTable{}, sorting: new(sync.Mutex)}
	must(0, shared.Agents.add(rows))(t)
	shared.Spent = &spent{agents: must(agentsOf(map[string]spending{idOf(2): {Month: 5}}))(t)}
	found := rowsOf(shared.find("", "", ""))
	wantEqual(t, "who spent most", found[0].ID, idOf(2))
	wantEqual(t, "what it spent", found[0].Spent.Month, 5)
	found = rowsOf(shared.find("", "", "name"))
	wantEqual(t, "the first and the last by name", [2]string{found[0].Name, found[2].Name}, [2]string{"A", "C"})
	for order, a := range rowsOf(shared.find("", "", "new")) { // what viewers share is as before
		wantEqual(t, "the agent", [2]string{a.ID, a.Name}, [2]string{rows[order].ID, rows[order].Name})
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
	wantEqual(t, "how many events are shown", len(all), shownEvents)
	wantEqual(t, "the first", [3]string{all[0].Type, all[1].Type, all[2].Type}, [3]string{"session.resumed", "agent.resumed", "agent.suspended"})
	for _, later := range []time.Duration{0, 30 * time.Second} { // in the last second, or among the many
		own := must(a.latest(ids["agent"], time.Now().Add(later), func(e eventRow) bool { return e.SessionID == ids["session"] }))(t)
		if len(own) == 0 || own[0].Type != "session.resumed" {
			t.Errorf("%s later there are %d of the session: %v", later, len(own), own)
		}
	}
}

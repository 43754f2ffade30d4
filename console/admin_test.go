package console

import (
	"fmt"
	"strings"
	"testing"
)

func TestABudgetShowsWhatOpenSessionsReserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.asAdmin("PUT", "/v1/budget", map[string]any{"max_value_usd": 100.000001, "period": "day"})
	w.newSession(w.newAgent("scout"), nil)
	w.as(t, viewer).get(budget).says("$80.000001 left", "Reserved by open sessions $20.00", "a day")
}

func TestEventsAreShownNewestFirstWithTheirChain(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	b.get(eventsPath).says("The chain has no event yet")
	w.happen(w.sample()["agent"], eventsShown/2+2)
	var first *answer
	await(t, "older events are offered", func() bool { // a full page has a link to them only once there are any
		first = b.get(eventsPath)
		return first.way("Next page") != ""
	})
	older := b.get(first.says("Signed checkpoint", "remit audit verify").way("Next page")).says("agent.created")
	n, last := older.rows("Number"), first.rows("Number")
	if len(last) != eventsShown || n[len(n)-1] != "1" || fmt.Sprint(atoi(n[0])+1) != last[len(last)-1] {
		t.Errorf("the next page has %s to %s after %d to %s", n[0], n[len(n)-1], len(last), last[len(last)-1])
	}
	b.get(eventsPath + "?type=agent.created").says("agent.created").saysNot("agent.resumed")
}

func (w *world) happen(agent string, times int) {
	w.t.Helper()
	for range times {
		w.asAdmin("POST", "/v1/agents/"+agent+"/suspend", map[string]any{})
		w.asAdmin("POST", "/v1/agents/"+agent+"/resume", map[string]any{})
	}
}

func atoi(text string) (n int) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

func TestOnlyTheSignInThatRotatesItsKeyGoesOnAndMaySendItTwice(t *testing.T) {
	t.Parallel()
	w, b := visited(t, admin)
	other, late := w.as(t, admin), w.browser(t)
	path := apiKeys + "/" + w.org + "/rotate"
	form := b.get(apiKeys).says("yours").form(path)
	form.Set("confirm", "rotate")
	before := *b.cookies[signInCookie]
	first := b.follow(b.ask("POST", path, form)).says("The API key is replaced", "yours").secret("rmk_")
	b.get(agents).want(200).says("Sign out")
	other.get(agents).want(303)
	late.cookies[signInCookie] = &before // requests that were under way
	for _, got := range []*answer{late.get(agents).want(303), late.post(agents, "name", "x"), late.get(stopPath + "/progress")} {
		wantEqual(t, got.what+" drops the sign-in that replaced it by", got.header.Values("Set-Cookie"), nil)
	}
	b.cookies[signInCookie] = &before // the answer to the first was lost
	wantEqual(t, "the key of the second answer", b.follow(b.ask("POST", path, form)).secret("rmk_"), first)
	b.get(agents).want(200)
	late.get(Prefix).says("API key")
	wantEqual(t, "how many cookies the form leaves", len(late.cookies), 0)
}

func (a *answer) secret(prefix string) string {
	a.t.Helper()
	for input := range a.elements("input") {
		if value := attribute(input, "value"); strings.HasPrefix(value, prefix) {
			return value
		}
	}
	a.t.Fatalf("%s shows no %s", a.what, prefix)
	return ""
}

// The first answer ends the sign-in, so the second cannot know what it was.
func TestWhoDeletesTheOwnKeyTwiceIsNotToldThatItIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	made := w.asAdmin("POST", "/v1/api-keys", map[string]any{"name": "own", "role": "admin"})
	w.keys[admin] = made["api_key"].(string)
	b := w.as(t, admin)
	path := apiKeys + "/" + made["id"].(string) + "/delete"
	form := b.get(apiKeys).form(path)
	form.Set("confirm", "delete")
	b.ask("POST", path, form).want(303)
	b.ask("POST", path, form).want(401).says("The API key was not deleted by this", "If you sent the form before, it may have been done")
}

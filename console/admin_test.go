package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestABudgetIsSetChangedAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	agent := w.sample()["agent"]
	b := w.as(t, admin)
	b.get(budget).says("There is no budget", "remit budget set")
	b.send(b.get(budget), budget, "max_value_usd", "x").says("The budget was not set", "a number of dollars")
	b.send(b.get(budget), budget, "max_value_usd", "100.000001", "period", "day").says("The budget is set", "$100.000001 left", "a day")
	w.newSession(agent, nil)
	b.get(budget).says("$80.000001 left", "Reserved by open sessions $20.00")
	b.send(b.get(budget), budget, "max_value_usd", "10").says("The budget was not set")
	b.send(b.get(budget), budget+"/remove").says("The budget was not removed", "type remove")
	b.send(b.get(budget), budget+"/remove", "confirm", "remove").says("The budget is removed", "There is no budget")
	if w.as(t, operator).get(budget).hasForm(budget) {
		t.Error("an operator's page has a form for the budget")
	}
}

func TestEventsAreShownNewestFirstWithTheirChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	b := w.as(t, viewer)
	b.get(eventsPath).says("The chain has no event yet", "Nothing has happened yet")
	agent := w.sample()["agent"]
	for range eventsShown/2 + 2 {
		w.asAdmin("POST", "/v1/agents/"+agent+"/suspend", map[string]any{})
		w.asAdmin("POST", "/v1/agents/"+agent+"/resume", map[string]any{})
	}
	numbers := func(a *answer) (shown []string) {
		for cell := range a.elements("td") {
			if attribute(cell, "data-label") == "Number" {
				shown = append(shown, textOf(cell))
			}
		}
		return shown
	}
	before := func(a *answer) string {
		for _, to := range a.links() {
			if strings.Contains(to, "before=") {
				return to
			}
		}
		return ""
	}
	// A full page has a link to older events only once there are any.
	for deadline := time.Now().Add(patience); before(b.get(eventsPath)) == ""; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("after a minute no page of older events is offered")
		}
	}
	first := b.get(eventsPath).says("Signed checkpoint", "remit audit verify")
	if n := numbers(first); len(n) != eventsShown {
		t.Fatalf("a page has %d events", len(n))
	}
	older := b.get(before(first)).says("agent.created")
	n, last := numbers(older), numbers(first)
	if n[len(n)-1] != "1" || fmt.Sprint(atoi(n[0])+1) != last[len(last)-1] {
		t.Errorf("the next page has %s to %s after %s", n[0], n[len(n)-1], last[len(last)-1])
	}
	b.get(eventsPath + "?type=agent.created").says("agent.created").saysNot("agent.resumed")
	b.get(eventsPath + "?type=nonsense").want(400)
}

func atoi(text string) (n int) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

func TestAWebhookIsCreatedTestedChangedAndDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	b := w.as(t, admin)
	b.get(webhooks).says("There is no webhook", "remit webhook create")
	b.send(b.get(webhooks), webhooks, "url", "http://127.0.0.1/x").says("No webhook was created")
	page := b.send(b.get(webhooks), webhooks, "url", "https://hooks.example.com/a", "types", "agent.suspended, session.ended", "description", "on call")
	page.says("The webhook is created", "agent.suspended", "session.ended", "on call", "not confirmed", "Nothing was sent yet")
	if !strings.Contains(page.text, "whsec_") {
		t.Error("the secret is not shown")
	}
	var path string
	for _, to := range b.get(webhooks).links() {
		if strings.HasPrefix(to, webhooks+"/") {
			path = to
		}
	}
	b.send(b.get(path), path+"/test").says("A test event is on its way", "webhook.test", "pending").saysNot("whsec_")
	b.get(path + "?status=dead").says("No delivery is dead").saysNot("Nothing was sent yet")
	b.send(b.get(path), path+"/change", "url", "https://hooks.example.com/b", "types", "", "description", "").says("The webhook is changed", "hooks.example.com/b", "Events all")
	if !strings.Contains(b.send(b.get(path), path+"/rotate", "confirm", "rotate").says("new secret").text, "whsec_") {
		t.Error("the new secret is not shown")
	}
	b.send(b.get(path), path+"/delete", "confirm", "delete").says("The webhook is deleted", "There is no webhook")
}

func TestAnAPIKeyIsCreatedRotatedAndDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	b := w.as(t, admin)
	page := b.send(b.get(apiKeys), apiKeys, "name", "on call", "role", "operator", "days", "30").says("The API key is created", "on call", "operator")
	made := page.secret("rmk_")
	other := w.browser(t)
	other.post(Prefix, "api_key", made).want(303)
	var listed []map[string]any
	w.api("GET", "/v1/api-keys", w.keys[admin], nil, &listed)
	path := apiKeys + "/" + listed[0]["id"].(string)
	page = b.send(b.get(apiKeys), path+"/rotate", "confirm", "rotate").says("The API key is replaced")
	if again := page.secret("rmk_"); again == made {
		t.Error("the key is the same")
	}
	other.get(Prefix).saysNot("Sign out")
	b.get(Prefix).says("Sign out")
	b.send(b.get(apiKeys), path+"/delete").says("The API key was not deleted")
	b.send(b.get(apiKeys), path+"/delete", "confirm", "delete").says("The API key is deleted").saysNot("on call")
	b.send(b.get(apiKeys), apiKeys, "name", "x", "role", "viewer", "days", "0").says("No API key was created", "1 to 3650 days")
}

func TestOnlyTheSignInThatRotatesItsKeyGoesOnWithTheSuccessor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	b, other := w.as(t, admin), w.as(t, admin)
	path := apiKeys + "/" + w.org
	b.send(b.get(apiKeys).says("yours"), path+"/rotate", "confirm", "rotate").says("The API key is replaced", "yours")
	b.get(agents).want(200).says("Sign out")
	other.get(agents).want(303)
}

// secret returns the value of an input that begins so.
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

func TestAllAgentsAreStoppedAndResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := w.sample()
	w.asAdmin("POST", "/v1/agents", map[string]any{"name": "other", "scopes": []string{}})
	b := w.as(t, operator)
	b.send(b.get(stopPath).says("0 of 2 live agents are suspended"), stopPath, "confirm", "no").says("Not all agents were suspended. To confirm it, type stop.")
	b.send(b.get(stopPath), stopPath, "confirm", "Stop", "reason", "an incident").says("All agents are suspended: 2 agents", "2 of 2")
	if status, text := w.try("POST", "/v1/sessions/"+ids["session"]+"/actions", map[string]any{}); status != 403 || !strings.Contains(text, "agent_suspended") {
		t.Errorf("a charge: %d %s", status, text)
	}
	b.send(b.get(stopPath), stopPath+"/resume", "confirm", "resume").says("All agents are resumed: 2 agents", "0 of 2")
	viewing := w.as(t, viewer).get(stopPath).says("0 of 2", "Only an operator")
	if viewing.hasForm(stopPath) {
		t.Error("a viewer's page has the switch")
	}
}

func TestAStopThatTakesLongIsShownUntilItsEndIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.sample()
	for _, test := range []struct {
		err  error
		says string
	}{{nil, "All agents are suspended: 1 agent."}, {&problem{Status: 503, Code: "unavailable", Detail: "the store is away"}, "Not all agents were suspended. The store is away."}} {
		end := make(chan struct{})
		org := uuid.MustParse(w.org)
		job := must(w.console.stops.begin(org, false, time.Now(), func() (int64, error) { <-end; return 1, test.err }))(t)
		if again := must(w.console.stops.begin(org, false, time.Now(), nil))(t); again != job {
			t.Error("a second stop runs beside the first")
		}
		b := w.as(t, operator)
		page := b.get(stopPath).says("Suspending all agents since")
		if page.hasForm(stopPath) || page.hasForm(stopPath+"/resume") {
			t.Error("while it runs the page has a form for it, or for the way back")
		}
		b.follow(b.post(stopPath+"/resume", "csrf", b.csrf(), "confirm", "resume", "back", stopPath)).says("Not all agents were resumed. All agents are still being suspended")
		if got := b.get(stopPath + "/progress"); got.text != `{"running":true,"live":1,"suspended":0}` {
			t.Errorf("the progress is %s", got.text)
		}
		close(end)
		<-job.done
		b.get(stopPath).says(test.says).saysNot("Suspending all agents")
	}
}

func TestAStopHasTheLastWord(t *testing.T) {
	t.Parallel()
	s := stops{known: map[uuid.UUID]*stopJob{}}
	var order []string
	end := make(chan struct{})
	org := uuid.New()
	resume := must(s.begin(org, true, time.Now(), func() (int64, error) { <-end; order = append(order, "resumed"); return 1, nil }))(t)
	stop := must(s.begin(org, false, time.Now(), func() (int64, error) { order = append(order, "suspended"); return 1, nil }))(t)
	close(end)
	<-resume.done
	<-stop.done
	if strings.Join(order, ",") != "resumed,suspended" {
		t.Errorf("the order is %v", order)
	}
}

func TestTheRotationOfTheOwnKeyMayBeSentTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	b := w.as(t, admin)
	path := apiKeys + "/" + w.org + "/rotate"
	form := b.get(apiKeys).form(path)
	form.Set("confirm", "rotate")
	before := *b.cookies[signInCookie]
	first := b.follow(b.ask("POST", path, form)).secret("rmk_")
	b.cookies[signInCookie] = &before // the answer to the first was lost
	b.get(agents).want(303)
	b.cookies[signInCookie] = &before
	if again := b.follow(b.ask("POST", path, form)).secret("rmk_"); again != first {
		t.Error("the second answer has another key")
	}
	b.get(agents).want(200)
}

func TestWhatIsDeletedTwiceIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := w.sample()
	w.asAdmin("PUT", "/v1/budget", map[string]any{"max_value_usd": 240, "period": "day"})
	b := w.as(t, admin)
	for _, test := range []struct{ on, path, word, says string }{
		{webhooks + "/" + ids["webhook"], webhooks + "/" + ids["webhook"] + "/delete", "delete", "The webhook is deleted"},
		{apiKeys, apiKeys + "/" + ids["key"] + "/delete", "delete", "The API key is deleted"},
		{budget, budget + "/remove", "remove", "The budget is removed"},
		{agents + "/" + ids["agent"], agents + "/" + ids["agent"] + "/families/" + ids["family"] + "/revoke", "", "The token family is revoked"},
		{agents + "/" + ids["agent"], agents + "/" + ids["agent"] + "/revoke", "revoke", "The agent is revoked"},
	} {
		form := b.get(test.on).form(test.path)
		form.Set("confirm", test.word)
		for range 2 {
			b.follow(b.ask("POST", test.path, form)).says(test.says)
		}
	}
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

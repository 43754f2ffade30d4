package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
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

// happen suspends and resumes an agent so many times.
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
	w.newAgent("one")
	w.newAgent("other")
	b := w.as(t, operator)
	b.send(b.get(stopPath).says("0 of 2 live agents are suspended"), stopPath, "confirm", "no").says("Not all agents were suspended. To confirm it, type stop.")
	b.send(b.get(stopPath), stopPath, "confirm", "Stop", "reason", "an incident").says("All agents are suspended: 2 agents", "2 of 2")
	b.send(b.get(stopPath), stopPath+"/resume", "confirm", "resume").says("All agents are resumed: 2 agents", "0 of 2")
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
	w, b := visited(t, admin)
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
	w, b, ids := sampled(t, admin)
	w.asAdmin("PUT", "/v1/budget", map[string]any{"max_value_usd": 240, "period": "day"})
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

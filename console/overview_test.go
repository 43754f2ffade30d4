package console

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/test/serviceproc"
)

// whole returns a page when what was spent has been added up.
func (b *browser) whole(path string) *answer {
	b.t.Helper()
	return b.once(path, func(a *answer) bool { return !strings.Contains(a.words(), "being added up") })
}

// once returns a page when it is as wanted.
func (b *browser) once(path string, wanted func(*answer) bool) (got *answer) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if got = b.get(path); wanted(got) {
			return got
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("after %v it is not as wanted: %s: %s", patience, path, got.words())
		}
	}
}

// caughtUp returns the overview when what was spent is added up, and the events that were kept have been read.
func (w *world) caughtUp(b *browser) *answer {
	w.t.Helper()
	b.whole(agents)
	return b.once(Prefix, func(a *answer) bool { return !strings.Contains(a.want(200).words(), "still being read") })
}

// overviewSays waits until the overview says something that an event brings.
func (w *world) overviewSays(b *browser, text string) *answer {
	w.t.Helper()
	return b.once(Prefix, func(a *answer) bool { return strings.Contains(a.want(200).words(), text) })
}

func TestTheOverviewShowsWhatRunsAndWhatItSpends(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	w.caughtUp(b).says("Spent today (UTC) $0.00", "Active sessions 0", "There is no agent yet", "Nothing", "No limit was reached")
	other := newWorld(t, settings{redis: w.mini})
	other.sample()
	other.caughtUp(other.as(t, viewer)).says("Spent today (UTC) $1.25", "Spent in 30 days $1.25", "Active sessions 1", "Held $2.00 1 pending transaction",
		"Agents 1", "Spent by agent, last 30 days", "scout", "Spent by action type", "llm.call")
}

func TestTheOverviewShowsWhatNeedsALook(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, operator)
	w.asAdmin("PUT", "/v1/budget", map[string]any{"max_value_usd": 240, "period": "day"})
	near := w.newSession(ids["agent"], map[string]any{"max_actions": 10, "max_value_usd": 200})
	w.asAdmin("POST", "/v1/sessions/"+near+"/actions", map[string]any{"count": 9})
	w.asAdmin("POST", "/v1/agents/"+ids["agent"]+"/suspend", map[string]any{})
	w.asAdmin("POST", "/v1/api-keys", map[string]any{"name": "soon over", "role": "viewer", "expires_in_seconds": 3600})
	w.overviewSays(b, "more is needed").says("Suspended agents scout", "soon over", "Most of the budget")
	page := w.overviewSays(b, "90 % 9 of 10")
	approve := sessions + "/" + ids["session"] + "/requests/" + ids["request"] + "/approve"
	b.send(page, approve, "add_value_usd", "5").says("The request is approved")
	w.overviewSays(b, "Sessions near a limit").saysNot("more is needed")
	w.as(t, viewer).get(Prefix).saysNot("Approve")
}

func TestSpendingIsAddedUpInTheBackgroundAndNotTooOften(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := w.sample()
	s := w.console.fleets.spendings(spentOf{organization: uuid.MustParse(w.org)}, time.Now())
	a, now := api{host: w.console.host, key: w.keys[viewer]}, time.Now()
	var first *spent
	for first == nil {
		first, _ = s.latest(a, now)
	}
	again, _ := s.latest(a, time.Now())
	wantEqual(t, "it is the reading before", again == first, true)
	total := spending{1_250_000, 1_250_000}
	wantEqual(t, "what each agent spent", first.agents, []agentSpending{{uuid.MustParse(ids["agent"]), total}})
	wantEqual(t, "the next reading comes after a pause", s.next.Sub(now) >= spentPause, true)
	s.tooLarge = true
	sums := must(s.reports(a, now))(t)
	wantEqual(t, "what all agents spent", sums.Total, total)
	wantEqual(t, "what two reports give", sums.agents, first.agents)
}

func TestAPanicInTheBackgroundIsLoggedAndEndsNothing(t *testing.T) {
	t.Parallel()
	var log serviceproc.Output
	w := newWorld(t, settings{log: &log})
	s := w.console.fleets.spendings(spentOf{organization: uuid.New()}, time.Now())
	for range 2 {
		s.next = time.Time{}
		if last, failed := s.latest(api{}, time.Now()); last != nil || failed == "" { // without a server it panics
			t.Errorf("%v, %q", last, failed)
		}
	}
	await(t, "the log tells of them", func() bool { return strings.Count(log.String(), "the console panicked") == 2 })
	w.browser(t).get("/metrics").says("\nremit_panics_total 2\n")
}

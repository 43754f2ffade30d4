package console

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// addedUp returns when what was spent has been added up once.
func (w *world) addedUp(b *browser) {
	w.t.Helper()
	b.whole(agents).want(200)
}

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
	w.addedUp(b)
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

func TestStatsForgetWhatIsOlderThanADay(t *testing.T) {
	t.Parallel()
	s, now := newStats(), time.Unix(1_800_000_000, 0)
	for _, age := range []time.Duration{0, 23 * time.Hour, 25 * time.Hour, 200 * time.Hour} {
		s.count(eventRow{Type: "session.limit_reached", OccurredAt: now.Add(-age), Data: []byte(`{"limit":"max_actions"}`), SessionID: uuid.NewString()})
	}
	if got := s.last(now); got["max_actions"] != 2 || len(got) != 1 {
		t.Errorf("the last day has %v", got)
	}
	if got := s.last(now.Add(48 * time.Hour)); len(got) != 0 {
		t.Errorf("two days later it has %v", got)
	}
}

func TestStatsAreBounded(t *testing.T) {
	t.Parallel()
	s := newStats()
	for range 3 * mostAsked {
		s.count(eventRow{Type: "session.more_requested", SessionID: uuid.NewString(), AskedID: uuid.NewString()})
		s.count(eventRow{Type: "session.limit_warning", SessionID: uuid.NewString()})
	}
	if len(s.asked) > mostAsked || len(s.near) > mostNear {
		t.Errorf("%d requests and %d sessions", len(s.asked), len(s.near))
	}
	for id, asked := range s.asked {
		s.count(eventRow{Type: "session.ended", SessionID: asked.session})
		if _, kept := s.asked[id]; kept {
			t.Fatal("a request outlives its session")
		}
	}
}

func TestSpendingIsAddedUpInTheBackgroundAndNotTooOften(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.sample()
	s := w.console.fleets.spendingsOf(spentOf{organization: uuid.MustParse(w.org)}, time.Now())
	a, now := api{host: w.console.host, key: w.keys[viewer]}, time.Now()
	var first *spent
	for first == nil {
		first, _ = s.latest(a, now)
	}
	if again, _ := s.latest(a, time.Now()); again != first {
		t.Error("it is read again at once")
	}
	for _, of := range first.agents {
		if of.Today != 1_250_000 || of.Month != 1_250_000 {
			t.Errorf("%s spent %+v", of.id, of)
		}
	}
	if s.next.Sub(now) < spentPause {
		t.Errorf("the next reading is in %s", s.next.Sub(now))
	}
	s.tooLarge = true
	sums := must(s.reports(a, now))(t)
	if sums.Total != (spending{1_250_000, 1_250_000}) {
		t.Errorf("all agents spent %+v", sums.Total)
	}
	if len(first.agents) != 1 || !slices.Equal(sums.agents, first.agents) {
		t.Errorf("two reports give %v, one %v", sums.agents, first.agents)
	}
}

package console

import (
	"net/http"
	"strings"
	"testing"
)

// awaitSeen waits until the follower of the organization has sent viewers so many events.
func (w *world) awaitSeen(events int64) *follower {
	w.t.Helper()
	await(w.t, "the follower has seen the events", func() bool { f := w.follower(); return f != nil && f.lastSeen() >= events })
	return w.follower()
}

func TestAPageIsToldOfWhatHappenedWhileItWasNotLive(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	b.get(Prefix).want(http.StatusOK) // begins a follower
	for _, test := range []struct{ path, change, what string }{{session, "suspend", "session.suspended"}, {agent, "resume", "session.resumed"}} {
		address := b.get(ids.path(test.path)).liveOf()
		before := w.awaitSeen(1).lastSeen()
		w.asAdmin("POST", "/v1/sessions/"+ids["session"]+"/"+test.change, map[string]any{})
		w.awaitSeen(before + 1)
		live := b.watch(address)
		live.until(test.what, func(m message) bool {
			wantEqual(t, "it is told that it missed something", m.Missed, false)
			return len(m.News) > 0 && m.News[len(m.News)-1].Type == test.what && m.Seen > before
		})
		live.stop()
	}
}

func TestAPageThatMissedMoreThanIsReadIsToldSo(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	b.watch(liveAt(nil))
	f := w.awaitSeen(1)
	f.mu.Lock()
	f.seen += mostMissed + 1 // as if they had happened
	f.mu.Unlock()
	b.watch(liveAt(nil, "session", ids["session"], "after", "0")).until("that it missed something", func(m message) bool { return m.Missed })
}

func TestNewsOfAPageHaveTheIDsOfItsRows(t *testing.T) {
	t.Parallel()
	_, b, ids := sampled(t, viewer)
	shown := map[string]bool{}
	for row := range b.get(sessions + "/" + ids["session"]).elements("tr") {
		if id := attribute(row, "data-event"); id != "" {
			shown[id] = true
		}
	}
	told := 0
	b.watch(liveAt(nil, "session", ids["session"], "after", "0")).until("all events of the page", func(m message) bool {
		for _, n := range m.News {
			wantEqual(t, n.ID+" "+n.Type+" is on the page", shown[n.ID], true)
			told++
		}
		return told == len(shown) && told > 2
	})
}

func TestNewsThatWereMissedComeBeforeLaterOnes(t *testing.T) {
	t.Parallel()
	w := &viewing{agent: "a", watched: map[string]*watched{}, wake: make(chan struct{}, 1), page: 2, whole: true, since: 4}
	f := &follower{viewers: map[*viewing]struct{}{w: {}}, stats: newStats()}
	event := func(n int64) eventRow {
		return eventRow{Sequence: n, Type: "t", AgentID: "a", Data: []byte(string('0' + rune(n)))}
	}
	f.tell([]eventRow{event(1), event(5), event(6)})                   // 1 is on the page
	f.noteMissed(w, []eventRow{event(3), event(4), event(5)}, w.since) // 5 was sent
	m, _, err := w.take(f)
	var order []string
	for _, n := range m.News {
		order = append(order, n.Details)
	}
	if got := strings.Join(order, " "); got != "3 4 5 6" || err != nil || m.Seen != 6 {
		t.Errorf("news %s, seen %d, %v", got, m.Seen, err)
	}
}

func TestAViewerWaitsForTheBeginningOfItsFollower(t *testing.T) {
	t.Parallel()
	f := &follower{viewers: map[*viewing]struct{}{}}
	w := &viewing{watched: map[string]*watched{}, wake: make(chan struct{}, 1), check: &keyCheck{}, page: 7}
	f.join(w)
	must(0, w.makeGood(f))(t)
	wantEqual(t, "before the follower has begun it is whole", w.whole, false)
	f.begin(7)
	if err := w.makeGood(f); err != nil || !w.whole || w.missed {
		t.Errorf("nothing happened: %v, whole %t, missed %t", err, w.whole, w.missed)
	}
}

func TestTheEndOfASessionMovesAsItChanges(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	id := ids["session"]
	live := b.watch(b.get(sessions + "/" + id).liveOf())
	first := live.patch("the first update", func(patch) bool { return true }).Time
	if first.Over || first.At["expires"] != first.At["ends"] || first.At["ended"].Machine != "" {
		t.Errorf("a session that goes on: %+v", first)
	}
	w.asAdmin("PATCH", "/v1/sessions/"+id, map[string]any{"expires_in_seconds": 7 * 60 * 60})
	live.patch("the later end", func(p patch) bool {
		return p.Time.To > first.To && p.Time.At["expires"] != first.At["expires"] && p.Time.Desc != first.Desc
	})
	w.asAdmin("POST", "/v1/sessions/"+id+"/end", map[string]any{})
	live.patch("the end", func(p patch) bool { return p.Time.Over && p.Time.At["ended"].Machine != "" && p.Time.To < first.To })
}

package console

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	livePath = Prefix + "/events/live"
	// mostWatched is how many objects a page may watch.
	mostWatched = 64
	// recheckTime is the longest time between two checks that the sign-in lives. An event is sent only after a check. While a
	// check fails no event is sent, and it is tried again.
	recheckTime = 5 * time.Second
	mostNews    = 20 // events that one update carries
)

// viewing is one viewer's page: what it shows, and what happened to that.
type viewing struct {
	visit   *visit
	watched map[string]*watched // its keys never change
	span    *span               // nil for a page without a list
	agent   string              // whose events the page shows; "" for none
	session string              // the same
	digest  string              // of the figures that the page shows of its sessions; "" once it is compared
	lists   bool                // the page lists sessions, so one that begins or ends changes it
	of      string              // if it is of this agent; "" for of any
	about   string              // events of the whole organization that change the page: aboutAll, aboutAgents or ""

	dismissed bool // its follower has ended, guarded by the follower's mu

	check *keyCheck // shared with the follower's other viewers of the same API key

	page   int64 // number of the last event that the page has, -1 when unknown
	since  int64 // number of the last event before those that its follower tells it of, guarded by the follower's mu
	whole  bool  // what happened between the two is made good
	missed bool  // not all of it: the page learns it once
	sent   int64 // number of the last event that the page was sent

	wake    chan struct{}
	changed urgency    // what events changed beside patches and news, guarded by the follower's mu
	news    []eventRow // guarded by the follower's mu
	due     []string   // sessions that an event was about, guarded by the follower's mu

	refresh refreshing
}

// liveAt returns the address of the updates of a page that shows these sessions.
func liveAt(ids []string, more ...string) string {
	return query(livePath, append([]string{"sessions", strings.Join(ids[:min(len(ids), mostWatched)], ",")}, more...)...)
}

// flagged is a parameter that is there or not.
func flagged(is bool) string {
	if is {
		return "1"
	}
	return ""
}

func idsOf(rows []sessionRow) (ids []string) {
	for _, row := range rows {
		if row.Status == statusActive {
			ids = append(ids, row.ID)
		}
	}
	return ids
}

// streamUpdates streams what changes about the objects of a page.
func streamUpdates(v *visit) error {
	if v.ctx.IsHead() {
		return nil
	}
	w := newViewing(v)
	f, err := v.console.follow(v)
	if err != nil {
		return err
	}
	if !f.join(w) {
		return errManyViewers
	}
	v.api = v.api.alone()
	refused := v.console.host.Stream(v.ctx, v.who.Organization, func(ctx context.Context, send func([]byte) error) {
		defer f.leave(w)
		w.run(ctx, f, send)
	})
	if refused != 0 {
		f.leave(w)
		return &problem{Status: refused, Code: "unavailable", Detail: "too many pages are live now. Reload the page for the latest"}
	}
	return nil
}

// newViewing reads what a page says of itself.
func newViewing(v *visit) *viewing {
	w := &viewing{
		visit: v, watched: map[string]*watched{}, wake: make(chan struct{}, 1),
		agent: v.queryParam("agent"), session: v.queryParam("session"), digest: v.queryParam("figures"),
		lists: v.queryParam("list") == "all", of: v.queryParam("of"), page: -1, about: v.queryParam("about"),
		check: &keyCheck{at: v.now},
	}
	changes := w.agent != "" || w.session != "" || w.lists || w.about != ""
	if after, err := strconv.ParseInt(v.queryParam("after"), 10, 64); err == nil && after >= 0 && changes {
		w.page = after
	}
	for id := range strings.SplitSeq(v.queryParam("sessions"), ",") {
		if isID(id) && len(w.watched) < mostWatched {
			w.watched[strings.ToLower(id)] = &watched{pause: pollSoon}
		}
	}
	w.span, w.refresh = newSpan(v, w.watched), newRefreshing(v, changes)
	return w
}

var errManyViewers = &problem{Status: fasthttp.StatusTooManyRequests, Code: "rate_limited", Detail: "too many pages of this organization are live now"}

// mostViewers is how many pages of an organization are live at once.
const mostViewers = 64

// join adds a viewer, unless there are too many.
func (f *follower) join(w *viewing) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.viewers) >= mostViewers {
		return false
	}
	w.since, w.check.seen = f.seen, f.seen
	for other := range f.viewers {
		if other.visit.signIn.APIKey == w.visit.signIn.APIKey {
			w.check = other.check
			break
		}
	}
	f.viewers[w] = struct{}{}
	w.dismissed = f.ended // since the viewer found it
	w.rouse()             // the first update comes at once
	if f.caught && w.visit.queryParam("reading") != "" {
		w.changed = urgent // the page was made before that
	}
	return true
}

func (f *follower) leave(w *viewing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.viewers, w)
	f.used = time.Now()
	for id := range w.watched {
		if !f.isWatched(id) {
			delete(f.looks, id)
		}
	}
}

// isWatched reports whether a viewer's page shows a session.
func (f *follower) isWatched(id string) bool {
	for w := range f.viewers {
		if _, shown := w.watched[id]; shown {
			return true
		}
	}
	return false
}

// tell counts events and tells viewers of those that concern their pages.
func (f *follower) tell(events []eventRow) {
	if slices.ContainsFunc(events, func(e eventRow) bool { return e.isOfAgent() && e.Type != "agent.limit_reached" }) { // which agents cause
		f.console.fleets.age(f.organization)
	}
	f.telling.Lock()
	defer f.telling.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		if f.caught {
			f.stats.count(e)
		}
		if l := f.looks[e.SessionID]; l != nil {
			l.stale.Store(true)
		}
		for w := range f.viewers {
			if e.Sequence > w.page { // the page has those before
				w.note(e)
			}
		}
		f.seen = e.Sequence
	}
}

// note is called with the follower's mu held.
func (w *viewing) note(e eventRow) {
	concerns := e.AgentID == w.agent && w.agent != "" || e.SessionID == w.session && w.session != ""
	_, shown := w.watched[e.SessionID]
	how := w.urgencyOf(e, concerns, shown)
	if w.changed = max(w.changed, how); how == calm && !concerns && !shown {
		return
	}
	if shown && len(w.due) < mostWatched && !slices.Contains(w.due, e.SessionID) {
		w.due = append(w.due, e.SessionID)
	}
	if concerns {
		if w.news = append(w.news, e.cut()); len(w.news) > mostNews {
			slices.SortStableFunc(w.news, bySequence)
			w.news = w.news[1:]
		}
	}
	w.rouse()
}

const (
	aboutAll    = "all"
	aboutAgents = "agents"
)

// membership are the events that change which sessions a list has.
var membership = []string{"session.created", "session.ended", "session.expired", "agent.revoked"}

// urgencyOf returns how soon the page is to be read anew after an event.
func (w *viewing) urgencyOf(e eventRow, concerns, shown bool) urgency {
	isPatched := shown && (e.Type == "session.suspended" || e.Type == "session.resumed") // and changes nothing else on a list
	switch {
	case w.about == aboutAll:
		return urgencyOfKind(e.Type)
	case w.about == aboutAgents && e.isOfAgent():
		return urgent
	case w.session != "" && (concerns || shown), concerns && !isPatched:
		return urgent
	case w.lists && slices.Contains(membership, e.Type) && (w.of == "" || w.of == e.AgentID):
		return urgent
	}
	return calm
}

func bySequence(a, b eventRow) int { return cmp.Compare(a.Sequence, b.Sequence) }

func (w *viewing) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

const (
	streamOver = "event: over\ndata: {}\n\n" // the sign-in has ended
	streamIdle = ":\n\n"                     // nothing to tell
)

// run sends updates until the viewer leaves or the sign-in ends.
func (w *viewing) run(ctx context.Context, f *follower, send func([]byte) error) {
	if send([]byte("retry: 3000\n\n")) != nil {
		return
	}
	for isKnown := true; ; { // whether the sign-in lives
		if isKnown {
			w.await(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		now, pause := time.Now(), tick // at most four updates a second
		text, err := []byte(streamIdle), w.check.of(w.visit, f, now)
		if isKnown = err == nil; isKnown {
			text, err = w.update(f, now)
		} else {
			pause = followFail
		}
		switch {
		case isOver(err):
			_ = send([]byte(streamOver))
			return
		case err != nil && isKnown || send(text) != nil:
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// await returns when an event concerns the page, or a session is to be looked at again.
func (w *viewing) await(ctx context.Context) {
	timer := time.NewTimer(time.Until(w.nextRead(time.Now().Add(recheckTime))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-w.wake:
	case <-timer.C:
	}
}

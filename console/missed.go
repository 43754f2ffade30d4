package console

import "strconv"

// mostMissed is how many of the organization's events are read for a page that was not live for a while.
const mostMissed = 5 * feedPage

// seen returns the number of the last event that a page has which is made now. It is "" when that cannot be read: then the page gets
// what happens from when it is live.
func (v *visit) seen() string {
	v.console.followers.mu.Lock()
	f := v.console.followers.known[v.who.Organization]
	v.console.followers.mu.Unlock()
	if f != nil {
		f.mu.Lock()
		begun, seen := f.begun, f.seen
		f.mu.Unlock()
		if begun {
			return strconv.FormatInt(seen, 10)
		}
	}
	head, err := v.api.checkpoint()
	if err != nil {
		return ""
	}
	return strconv.FormatInt(head.Sequence, 10)
}

// lastSeen returns the number of the last event that viewers were sent, -1 after the follower's end: that of its key may be why.
func (f *follower) lastSeen() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return -1
	}
	return f.seen
}

// begin notes where the follower begins. Viewers read for themselves what they need of before.
func (f *follower) begin(head int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun, f.seen = true, head
	for w := range f.viewers {
		w.since = head
		w.rouse()
	}
}

// makeGood notes what happened after the page was made, or was live for the last time, and before its follower sent it events.
func (w *viewing) makeGood(f *follower) error {
	f.mu.Lock()
	begun, since := f.begun, w.since
	f.mu.Unlock()
	if w.whole || !begun {
		return nil
	}
	if w.page >= 0 {
		after := max(w.page, since-mostMissed)
		w.missed = after > w.page
		for after < since {
			events, next, err := w.visit.api.feed(after)
			if err != nil {
				return err
			}
			w.missed = w.missed || len(events) == 0 || events[0].Sequence > after+1 // they are not kept any more
			f.noteMissed(w, events, since)
			if after = next; next == 0 { // it was the last page
				break
			}
		}
	}
	w.whole = true
	return nil
}

// noteMissed notes those events that the follower has not sent the viewer.
func (f *follower) noteMissed(w *viewing, events []eventRow, since int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		if e.Sequence <= since {
			w.note(e)
		}
	}
}

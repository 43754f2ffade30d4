package console

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-json"
	"remit/internal/chart"
	"remit/money"
)

// message is one update of a page.
type message struct {
	Patches []patch `json:"patches,omitempty"`
	News    []item  `json:"news,omitempty"`
	Stale   bool    `json:"stale,omitempty"`  // the page is to be read anew
	Missed  bool    `json:"missed,omitempty"` // there was more news than is kept
	Seen    int64   `json:"seen,omitempty"`   // number of the last event that the page was sent
}

// item is an event as the script adds it to a page.
type item struct {
	ID      string `json:"id"`
	At      string `json:"at"`
	Full    string `json:"full"`
	Type    string `json:"type"`
	By      string `json:"by"`
	About   string `json:"about"`
	Link    string `json:"link"`
	Details string `json:"details"`
}

func itemOf(e eventRow) item {
	i := item{ID: e.Key(), Type: e.Type, By: e.By(), Details: e.Details()}
	if at := stampOf(e.OccurredAt); at != nil {
		i.At, i.Full = at.Machine, at.Full
	}
	switch {
	case e.SessionID != "":
		i.About, i.Link = "session "+short(e.SessionID), sessionPath(e.SessionID)
	case e.AgentID != "":
		i.About, i.Link = "agent "+short(e.AgentID), agentPath(e.AgentID)
	}
	return i
}

// patch is what a browser changes on a page.
type patch struct {
	ID    string            `json:"id"`
	State string            `json:"state"`
	Text  map[string]string `json:"text"`
	Bars  map[string]bar    `json:"bars"`
	Time  lifetime          `json:"time"`
}

// lifetime is the bar of a session's time, which the script moves on, and the times that the page writes.
type lifetime struct {
	To   int64  `json:"to"`   // its end, in milliseconds since 1970
	Over bool   `json:"over"` // it does not move any more
	Near int64  `json:"near"` // when it turns yellow, in milliseconds since 1970
	Desc string `json:"desc"`

	Level chart.Level      `json:"level"` // of one that is over
	At    map[string]stamp `json:"at"`    // ends, expires and ended; the last only for a session that has
}

func lifetimeOf(s sessionRow) lifetime {
	t := s.Time()
	l := lifetime{
		To: s.Ends().UnixMilli(), Over: s.Status != statusActive, Near: t.NearAt().UnixMilli(), Desc: t.Description(),
		Level: t.EndLevel(), At: map[string]stamp{},
	}
	for name, at := range map[string]time.Time{"ends": s.Ends(), "expires": s.ExpiresAt, "ended": s.EndedAt} {
		if text := stampOf(at); text != nil {
			l.At[name] = *text
		}
	}
	return l
}

// bar is the lengths of a bar, and what it says to who does not see it.
type bar struct {
	Title string   `json:"title"`
	Desc  string   `json:"desc"`
	Share string   `json:"share"`
	Parts [3]int64 `json:"parts"` // used, held and delegated
	Limit int64    `json:"limit"`

	Level chart.Level `json:"level"`
}

func barOf(u chart.Usage) bar {
	return bar{u.Title(), u.Description(), u.Share(), [3]int64{u.Used, u.Held, u.Delegated}, u.Limit, u.Level()}
}

var errDismissed = errors.New("the follower of the organization has ended")

// update returns the next message of the stream: patches of the sessions that changed, and news.
func (w *viewing) update(f *follower, now time.Time) ([]byte, error) {
	if err := w.makeGood(f); err != nil {
		return nil, err
	}
	message, due, err := w.take(f)
	if err != nil {
		return nil, err
	}
	if err := w.readDue(f, due, now); err != nil {
		return nil, err
	}
	var first []sessionRow // as the first look has them
	for _, s := range w.watched {
		if s.info == nil || s.gone {
			continue
		}
		row := sessionRow{SessionInfo: *s.info}
		if w.digest != "" {
			first = append(first, row)
		}
		if now := figuresOf(row); now != s.shown {
			if w.session != "" && s.shown != (figures{}) {
				w.refresh.ask(summed) // what it used by type, say
			}
			s.shown = now
			message.Patches = append(message.Patches, patchOf(row))
		}
	}
	w.compare(first)
	w.refresh.lookAtSums(w.visit, now)
	message.Stale = w.refresh.isDue(&f.refreshes, now)
	if message.Seen == w.sent && len(message.Patches)+len(message.News) == 0 && !message.Missed && !message.Stale {
		return []byte(streamIdle), nil
	}
	w.sent = message.Seen
	text, err := json.Marshal(message)
	return bytes.Join([][]byte{[]byte("data: "), text, []byte("\n\n")}, nil), err
}

// take takes what the follower has noted for the viewer: news, and the sessions that events were about.
func (w *viewing) take(f *follower) (m message, due []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.dismissed {
		return m, nil, errDismissed
	}
	if w.whole {
		m.Seen = max(f.seen, w.page)
	}
	m.Missed = w.missed
	w.refresh.ask(w.changed)
	slices.SortStableFunc(w.news, bySequence)
	for _, e := range w.news {
		m.News = append(m.News, itemOf(e))
	}
	due = w.due
	w.due, w.news, w.changed, w.missed = nil, nil, calm, false
	return m, due, nil
}

// figures are what a patch is made of: equal ones make the same patch.
type figures struct {
	state                                 string
	actions, maxActions, actionsDelegated int64
	value, maxValue, held, delegated      money.MicroUSD
	overage                               money.MicroUSD
	created, expires, ended               int64
}

func figuresOf(s sessionRow) figures {
	return figures{
		s.State(), s.ActionCount, s.MaxActions, s.ActionsDelegated, s.ValueUsed, s.MaxValue, s.ValueHeld, s.ValueDelegated,
		s.ValueOverage, s.CreatedAt.UnixMilli(), s.ExpiresAt.UnixMilli(), s.EndedAt.UnixMilli(),
	}
}

// compare asks for a refresh when the first look at the sessions found other figures than the page shows: one was charged in between, which
// is no event. Of more sessions than a page may watch the others wait for the next refresh.
func (w *viewing) compare(first []sessionRow) {
	if w.digest != "" && w.digest != digestOf(first) {
		w.refresh.ask(summed)
	}
	w.digest = ""
}

// digestOf returns a digest of the figures of sessions in any order, of as many as a page may watch. All instances of a version make the
// same one.
func digestOf(rows []sessionRow) string {
	var lines []string
	for _, row := range rows[:min(len(rows), mostWatched)] {
		lines = append(lines, fmt.Sprint(row.ID, figuresOf(row)))
	}
	slices.Sort(lines)
	digest := fnv.New64a()
	fmt.Fprint(digest, lines)
	return strconv.FormatUint(digest.Sum64(), 36)
}

func patchOf(s sessionRow) patch {
	return patch{
		ID: s.ID, State: s.State(),
		Text: map[string]string{
			"actions": count(s.ActionCount), "max_actions": count(s.MaxActions), "actions_delegated": count(s.ActionsDelegated),
			"value": usd(s.ValueUsed), "max_value": usd(s.MaxValue), "held": usd(s.ValueHeld), "delegated": usd(s.ValueDelegated),
		},
		Bars: map[string]bar{"actions": barOf(s.Actions()), "value": barOf(s.Value())},
		Time: lifetimeOf(s),
	}
}

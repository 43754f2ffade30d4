package console

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/goccy/go-json"
	"remit/chart"
)

// message is one update of a page.
type message struct {
	Patches []patch `json:"patches,omitempty"`
	News    []item  `json:"news,omitempty"`
	Fresh   int     `json:"fresh,omitempty"` // sessions that were created
}

// item is an event as the script adds it to a page.
type item struct {
	At      string `json:"at"`
	Full    string `json:"full"`
	Type    string `json:"type"`
	By      string `json:"by"`
	About   string `json:"about"`
	Link    string `json:"link"`
	Details string `json:"details"`
}

func itemOf(e eventRow) item {
	i := item{Type: e.Type, By: e.By(), Details: e.Details()}
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
}

// bar is the lengths of a bar, and what it says to who does not see it.
type bar struct {
	Title string   `json:"title"`
	Desc  string   `json:"desc"`
	Parts [3]int64 `json:"parts"` // used, held and delegated
	Limit int64    `json:"limit"`
}

func barOf(u chart.Usage) bar {
	return bar{u.Title(), u.Description(), [3]int64{u.Used, u.Held, u.Delegated}, u.Limit}
}

var errDismissed = errors.New("the follower of the organization has ended")

// update returns the next message of the stream: patches of the sessions that changed, and news.
func (w *viewing) update(f *follower, now time.Time) ([]byte, error) {
	f.mu.Lock()
	due, news, fresh, dismissed := w.due, w.news, w.fresh, w.dismissed
	w.due, w.news, w.fresh = nil, nil, 0
	f.mu.Unlock()
	if dismissed {
		return nil, errDismissed
	}
	message := message{Fresh: fresh}
	if err := w.readDue(f, due, now); err != nil {
		return nil, err
	}
	for _, s := range w.watched {
		if s.info == nil || s.gone {
			continue
		}
		p := patchOf(sessionRow{SessionInfo: *s.info})
		if text := p.String(); text != s.shown {
			s.shown = text
			message.Patches = append(message.Patches, p)
		}
	}
	for _, e := range news {
		message.News = append(message.News, itemOf(e))
	}
	if len(message.Patches)+len(message.News)+fresh == 0 {
		return []byte(":\n\n"), nil
	}
	text, err := json.Marshal(message)
	return bytes.Join([][]byte{[]byte("data: "), text, []byte("\n\n")}, nil), err
}

// String tells patches apart.
func (p patch) String() string { return fmt.Sprintf("%s %v %v", p.State, p.Text, p.Bars) }

func patchOf(s sessionRow) patch {
	return patch{
		ID: s.ID, State: s.State(),
		Text: map[string]string{
			"actions": count(s.ActionCount), "max_actions": count(s.MaxActions), "actions_delegated": count(s.ActionsDelegated),
			"value": usd(s.ValueUsed), "max_value": usd(s.MaxValue), "held": usd(s.ValueHeld), "delegated": usd(s.ValueDelegated),
		},
		Bars: map[string]bar{"actions": barOf(s.Actions()), "value": barOf(s.Value())},
	}
}

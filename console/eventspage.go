package console

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

const eventsPath = Prefix + "/events"

// eventsPage is the organization's events, newest first, and the state of their chain.
type eventsPage struct {
	Shown       []eventRow
	Type        string
	Head        checkpoint
	Made        time.Time // of the checkpoint
	First, Next string
}

// eventsShown is how many events a page has.
const eventsShown = 100

func showEvents(v *visit) error {
	page := eventsPage{Type: strings.TrimSpace(v.asked("type"))}
	var err error
	if page.Head, err = v.api.checkpoint(); err != nil {
		return err
	}
	page.Made = time.Unix(page.Head.Issued, 0)
	before := page.Head.Sequence + 1
	if given, err := strconv.ParseInt(v.asked("before"), 10, 64); err == nil && given > 0 && given < before {
		before, page.First = given, query(eventsPath, "type", page.Type)
	}
	if err := page.read(v, before); err != nil {
		return err
	}
	return v.show("events", "Events", page)
}

// read reads the events before a number. The API lists from the oldest, and numbers have no gaps. With a type it looks at as many
// as the API looks at for one list.
func (p *eventsPage) read(v *visit, before int64) error {
	window := int64(eventsShown)
	var parameters []string
	if p.Type != "" {
		window, parameters = 1000, []string{"types", p.Type}
	}
	after := max(before-1-window, 0)
	events, _, err := v.api.feed(after, parameters...)
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(events) {
		if e.Sequence < before {
			p.Shown = append(p.Shown, e)
		}
	}
	if after > 0 {
		p.Next = query(eventsPath, "type", p.Type, "before", strconv.FormatInt(after+1, 10))
	}
	return nil
}

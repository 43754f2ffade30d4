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
	paging

	Shown []eventRow
	Type  string
	Head  checkpoint
	Made  time.Time // of the checkpoint
	Gone  bool      // older events are not kept
}

// eventsShown is how many events a page has.
const eventsShown = 100

func showEvents(v *visit) error {
	page := eventsPage{Type: strings.TrimSpace(v.queryParam("type"))}
	var err error
	if page.Head, err = v.api.checkpoint(); err != nil {
		return err
	}
	page.Made = time.Unix(page.Head.Issued, 0)
	before, cursor := page.Head.Sequence+1, ""
	if given, err := strconv.ParseInt(v.queryParam("before"), 10, 64); err == nil && given > 0 && given < before {
		before, cursor = given, strconv.FormatInt(given, 10)
	}
	next, err := page.read(v, before)
	if err != nil {
		return err
	}
	page.paging = v.paged(cursor, next, func(cursor, past string) string {
		return query(eventsPath, "type", page.Type, "before", cursor, "past", past)
	})
	return v.show("events", "Events", page)
}

// read reads the events before a number, and returns that of the next page, "" for none. Numbers have no gaps. With a type it looks at
// the last thousand before that number.
func (p *eventsPage) read(v *visit, before int64) (next string, err error) {
	window := int64(eventsShown)
	var parameters []string
	if p.Type != "" {
		window, parameters = 1000, []string{"types", p.Type}
	}
	from := max(before-1-window, 0)
	found, err := v.api.between(from, before, parameters...)
	if err != nil {
		return "", err
	}
	older := from + 1
	if len(found) > eventsShown {
		found = found[len(found)-eventsShown:]
		older = found[0].Sequence
	}
	slices.Reverse(found)
	p.Shown = found
	oldest, err := v.api.oldest()
	if p.Gone = oldest.Sequence > 1 && older <= oldest.Sequence; err != nil {
		return "", err
	}
	if older > max(oldest.Sequence, 1) {
		next = strconv.FormatInt(older, 10)
	}
	return next, nil
}

// oldest returns the oldest event that is kept; its number is 0 for none.
func (a api) oldest() (eventRow, error) {
	var first []eventRow
	err := a.get(query("/v1/events", "after", "0", "limit", "1"), &first)
	return append(first, eventRow{})[0], err
}

// between returns the events after one number and before another, oldest first.
func (a api) between(after, before int64, parameters ...string) (found []eventRow, err error) {
	for after < before-1 {
		events, next, err := a.feed(after, parameters...)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if e.Sequence < before {
				found = append(found, e)
			}
		}
		if next <= after {
			break
		}
		after = next
	}
	return found, nil
}

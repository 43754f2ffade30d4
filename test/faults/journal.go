package faults

import (
	"fmt"
	"strings"
	"time"
)

// mostShown is how many calls the detail of a violation shows at the most.
const mostShown = 60

// journalOf returns the calls that bear on a session as the detail of a violation, a line each. When they are too many, it
// leaves out first those that were acknowledged at once, then the oldest.
func journalOf(session string, calls []Call) string {
	about := callsAbout(session, calls)
	shown := about
	if len(shown) > mostShown {
		shown = doubtful(about)
	}
	shown = shown[max(0, len(shown)-mostShown):]
	lines := []string{fmt.Sprintf("its calls, %d of %d:", len(shown), len(about))}
	for _, c := range shown {
		lines = append(lines, lineAbout(c))
	}
	return strings.Join(lines, "\n\t")
}

// callsAbout returns the calls on a session, and those that have no effect of their own but the subject of such a call: of two
// settlements of a lease at once, for example, only one counts.
func callsAbout(session string, calls []Call) []Call {
	subjects := map[string]bool{}
	for _, c := range calls {
		if c.Session == session && c.Subject != "" {
			subjects[c.Subject] = true
		}
	}
	var about []Call
	for _, c := range calls {
		if c.Session == session || c.Session == "" && subjects[c.Subject] {
			about = append(about, c)
		}
	}
	return about
}

// doubtful returns the calls that were not acknowledged, and all other calls with their keys.
func doubtful(calls []Call) []Call {
	keys := map[string]bool{}
	for _, c := range calls {
		if c.Outcome != OK && c.Key != "" {
			keys[c.Key] = true
		}
	}
	var out []Call
	for _, c := range calls {
		if c.Outcome != OK || keys[c.Key] {
			out = append(out, c)
		}
	}
	return out
}

func lineAbout(c Call) string {
	rounded := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	return fmt.Sprintf("%v to %v at %s: %s of %q, key %q, %+d actions, %+d used, %+d held: %s (status %d, code %q, replayed %v, error %q)",
		rounded(c.Began), rounded(c.Ended), c.Instance, c.Kind, c.Subject, c.Key, c.Effect.Actions, int64(c.Effect.Used),
		int64(c.Effect.Held), c.Outcome, c.Status, c.Code, c.Replayed, c.Err)
}

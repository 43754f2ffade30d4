package redisstore

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

const budgetThreshold = "budget.threshold"

// noted is the highest threshold of each limit of a session that was noted, or is reached by what was noted; 0 for none.
type noted struct{ actions, value int64 }

// note notes which thresholds a session has reached. Copies of a model share what was noted.
func (m *model) note(id uuid.UUID) {
	s := m.session(id)
	if s == nil {
		return
	}
	was := m.noted[id]
	is := noted{s.reached(was.actions, s.ActionCount, s.MaxActions), was.value}
	if used := s.ValueUsed + s.ValueHeld; used > 0 {
		is.value = s.reached(was.value, int64(used), int64(s.MaxValue-s.Withheld))
	}
	m.keepNoted(id, is)
}

func (m *model) keepNoted(id uuid.UUID, is noted) {
	if is != m.noted[id] {
		all := maps.Clone(m.noted)
		if all == nil {
			all = map[uuid.UUID]noted{}
		}
		all[id] = is
		m.noted = all
	}
}

// reached returns the highest of the session's thresholds that used has reached, and at least the noted one.
func (s Session) reached(noted, used, limit int64) int64 {
	percents := s.Thresholds
	if percents == nil {
		percents = DefaultThresholds
	}
	for _, percent := range percents {
		if p := int64(percent); p > noted && used*100 >= limit*p {
			noted = p
		}
	}
	return noted
}

// forget forgets what was noted of a limit and is not reached since it has changed.
func forget(noted, used, limit int64) int64 {
	if noted > 0 && used*100 < limit*noted {
		return used * 100 / limit
	}
	return noted
}

// forgetTold follows a change of the limits.
func (m *model) forgetTold(s *Session, n NewLimits) {
	is := m.noted[s.ID]
	if n.MaxActions != nil {
		is.actions = forget(is.actions, s.ActionCount, s.MaxActions)
	}
	if n.MaxValue != nil {
		is.value = forget(is.value, int64(s.ValueUsed+s.ValueHeld), int64(s.MaxValue-s.Withheld))
	}
	m.keepNoted(s.ID, is)
}

var (
	notedOfActions = regexp.MustCompile(`A(\d+)`)
	notedOfValue   = regexp.MustCompile(`B(\d+)`)
	nextThresholds = regexp.MustCompile(`t(\d+),(\d+)\.`)
)

// numberIn returns the number that a pattern finds, 0 for none.
func numberIn(pattern *regexp.Regexp, text string) int64 {
	if found := pattern.FindStringSubmatch(text); found != nil {
		n, _ := strconv.ParseInt(found[1], 10, 64)
		return n
	}
	return 0
}

// wantThresholds compares what a session's flags say of thresholds with the model. It takes what its field r has of them out of stored.
func wantThresholds(t rapid.TB, m *model, s Session, stored map[string]string) {
	t.Helper()
	if is := (noted{numberIn(notedOfActions, stored["w"]), numberIn(notedOfValue, stored["w"])}); is != m.noted[s.ID] {
		t.Errorf("of %d of %d actions and %s of %s USD it was noted %+v, want %+v", s.ActionCount, s.MaxActions, s.ValueUsed+s.ValueHeld,
			s.MaxValue-s.Withheld, is, m.noted[s.ID])
	}
	own, want := "", ""
	if _, rest, has := strings.Cut(stored["w"], "T"); has {
		own, _, _ = strings.Cut(rest, ".")
		own = "=" + own
	}
	if own != s.Thresholds.text() {
		t.Errorf("its thresholds are stored as %q, want %q", own, s.Thresholds.text())
	}
	if s.watched() {
		want = fmt.Sprintf("t%d,%d.", s.next(m.noted[s.ID].actions), s.next(m.noted[s.ID].value))
	}
	if found := nextThresholds.FindString(stored["r"]); found != want {
		t.Errorf("the next thresholds are stored as %q, want %q", found, want)
	}
	if r, has := stored["r"]; has {
		stored["r"] = nextThresholds.ReplaceAllString(r, "")
	}
}

// watched says whether each charge looks at the session's thresholds.
func (s Session) watched() bool { return len(s.Thresholds) > 0 && s.Thresholds[0] < 80 }

func (s Session) next(noted int64) int {
	for _, percent := range s.Thresholds {
		if int64(percent) > noted {
			return percent
		}
	}
	return 101
}

func drawThresholds(t *rapid.T) Thresholds {
	return rapid.SampledFrom([]Thresholds{nil, nil, nil, {30, 60}, {}, {90}, {1, 2, 3, 50, 79, 80, 99, 100}, {100}}).Draw(t, "thresholds")
}

// wantNotedOnce checks the audit trail: a threshold is noted once as long as the session's limits are the same, and nothing is noted that
// was not reached.
func (w *fixture) wantNotedOnce(t rapid.TB, m *model) {
	t.Helper()
	last := map[uuid.UUID]noted{}
	for _, e := range w.trail(t, w.token.Agent) {
		is := last[e.Session]
		switch at := e.Threshold; {
		case e.Type == "session.limits_changed":
			delete(last, e.Session)
			continue
		case e.Type != budgetThreshold:
			continue
		case e.Limit == "max_actions" && at > is.actions:
			is.actions = at
		case e.Limit != "max_actions" && at > is.value:
			is.value = at
		default:
			t.Errorf("noted again: %+v", e)
		}
		last[e.Session] = is
	}
	for id, is := range last {
		if was := m.noted[id]; is.actions > was.actions || is.value > was.value {
			t.Errorf("the trail tells of %+v, want at most %+v", is, was)
		}
	}
}

// trail reads an agent's audit trail, as far as it is kept.
func (w *fixture) trail(t rapid.TB, agent uuid.UUID) []Event {
	t.Helper()
	var all []Event
	for after, more := "", true; more; {
		events, left, err := w.store.Events(context.Background(), Caller{Key: &w.key}, agent, after, 1000)
		if err != nil || len(events) == 0 {
			t.Fatal(len(events), err)
		}
		all, after, more = append(all, events...), events[len(events)-1].ID, left
	}
	return all
}

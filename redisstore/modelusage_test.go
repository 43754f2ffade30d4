package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
)

// actionTypes are those of the model's steps; the first is none.
var actionTypes = []string{"", "transfer", "llm.call", "with space", "two\nlines", `two\nlines`, "1 2 3"}

type typeOf struct {
	session    uuid.UUID
	actionType string
}

// countType counts what a session used under an action type. Copies of a model share the counts.
func (m *model) countType(session uuid.UUID, actionType string, actions int64, value money.MicroUSD) {
	if actionType == "" {
		return
	}
	counts := maps.Clone(m.typed)
	if counts == nil {
		counts = map[typeOf]kernel.UsedAmounts{}
	}
	of := typeOf{session, actionType}
	counts[of] = counts[of].Plus(kernel.UsedAmounts{Actions: actions, Value: value})
	m.typed = counts
}

// countTypes counts what a lease was spent on, as far as it was charged.
func (m *model) countTypes(session uuid.UUID, types []TypeUsage, actions int64, value money.MicroUSD) {
	for _, used := range types {
		n, v := min(used.ActionCount, actions), min(used.Value, value)
		m.countType(session, used.ActionType, n, v)
		actions, value = actions-n, value-v
	}
}

func (p *player) typesOfLease(t *rapid.T) []TypeUsage {
	var types []TypeUsage
	for _, actionType := range actionTypes[1:rapid.IntRange(1, 4).Draw(t, "types")] {
		types = append(types, TypeUsage{actionType, rapid.Int64Range(0, 6).Draw(t, "actions"), p.amount(t, 20)})
	}
	return types
}

// wantUsage compares what a session stores by action type and by day with the model. It takes these fields out of stored.
func wantUsage(t rapid.TB, m *model, s Session, stored map[string]string) {
	t.Helper()
	found, indexes, folded := map[string]kernel.UsedAmounts{}, map[string]string{}, kernel.DayUsage{ByIndex: map[string]kernel.UsedAmounts{}}
	day, types := stored[string(s.Agent[:])], cmp.Or(stored["tc"], "0")
	delete(stored, string(s.Agent[:]))
	delete(stored, "tc")
	for field, text := range maps.Clone(stored) {
		kind, name, _ := strings.Cut(field, ":")
		switch {
		case kind == "t":
			numbers := mustIn(kernel.NumbersOf(strings.Fields(text), 3))(t)
			found[kernel.TypeNamed(name)] = found[kernel.TypeNamed(name)].Plus(kernel.UsedAmounts{Actions: numbers[1], Value: money.MicroUSD(numbers[2])})
			indexes[fmt.Sprint(numbers[0])] = kernel.TypeNamed(name)
		case kind == "p":
			number := mustIn(kernel.NumbersOf([]string{text}, 1))(t)[0]
			found[kernel.TypeNamed(name)] = found[kernel.TypeNamed(name)].Plus(kernel.UsedAmounts{Actions: number % 1_000_000, Value: money.MicroUSD(number / 1_000_000)})
		case kind == "u":
			day := mustIn(kernel.ReadDay(text))(t)
			folded.All = folded.All.Plus(day.All)
			for index, used := range day.ByIndex {
				folded.ByIndex[index] = folded.ByIndex[index].Plus(used)
			}
		default:
			continue
		}
		delete(stored, field)
	}
	want := map[string]kernel.UsedAmounts{}
	for of, used := range m.typed {
		if of.session == s.ID {
			want[of.actionType] = used
		}
	}
	if !maps.Equal(found, want) || len(indexes) != len(want) || types != fmt.Sprint(len(want)) {
		t.Errorf("by action type %v with indexes %v of %q, want %v", found, indexes, types, want)
	}
	wantFolded(t, m, s, stored["lv"], folded, indexes, want)
	wantDayEnd(t, m, day)
}

// wantFolded checks that the days of a session, which was folded just now, add up to what it used. Leases that have expired may still
// be held.
func wantFolded(t rapid.TB, m *model, s Session, held string, folded kernel.DayUsage, indexes map[string]string, want map[string]kernel.UsedAmounts) {
	t.Helper()
	leased, _ := m.leased(s.ID)
	lv := mustIn(kernel.NumbersOf([]string{cmp.Or(held, "0")}, 1))(t)[0]
	if all := (kernel.UsedAmounts{Actions: s.ActionCount, Value: s.ValueUsed + leased - money.MicroUSD(lv)}); folded.All != all {
		t.Errorf("the days add up to %v, want %v", folded.All, all)
	}
	for index, name := range indexes {
		if folded.ByIndex[index] != want[name] {
			t.Errorf("the days of %q add up to %v, want %v", name, folded.ByIndex[index], want[name])
		}
		delete(folded.ByIndex, index)
	}
	if len(folded.ByIndex) > 0 {
		t.Errorf("the days have %v of no type", folded.ByIndex)
	}
}

// wantDayEnd checks the end of the day on which a session's usage counts. The test may play at midnight.
func wantDayEnd(t rapid.TB, m *model, stored string) {
	t.Helper()
	end := func(day int) string { return strconv.Itoa((day + 1) * 24 * 60 * 60) }
	if stored < end(records.UsageDay(m.start)) || stored > end(records.UsageDay(time.Now())) {
		t.Errorf("the day of a session ends at %q, want %s", stored, end(records.UsageDay(time.Now())))
	}
}

// wantDays checks that the days of the agent add up to what its sessions used.
func (w *fixture) wantDays(t rapid.TB, sum kernel.UsedAmounts) {
	t.Helper()
	fields := w.peek.HGetAll(context.Background(), w.store.keys.UsageDays(w.token.Agent)).Val()
	var found kernel.UsedAmounts
	for field, text := range fields {
		if strings.HasPrefix(field, "d:") {
			found = found.Plus(mustIn(kernel.ReadDay(text))(t).All)
		}
	}
	if found != sum {
		t.Errorf("the days of the agent add up to %v, want %v", found, sum)
	}
}

func (w *fixture) foldAll(t rapid.TB, m *model) {
	t.Helper()
	places := make([]place, len(m.sessions))
	for i, s := range m.sessions {
		places[i] = place{s.ID, w.token.Agent}
	}
	mustIn(0, w.store.foldSessions(context.Background(), flow{}, w.key.Organization, places))(t)
}

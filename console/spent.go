package console

import (
	"bytes"
	"cmp"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/google/uuid"
	"remit/internal/chart"
	"remit/money"
	"remit/server/pages"
)

// spent is one reading of what an organization, or one of its agents, spent in the last 30 days, in little memory. Viewers share it.
type spent struct {
	At      time.Time
	Total   spending
	Problem string // why a part is not known; "" when all is

	NoTypes, NoAgents bool // what each type, each agent cost is not known

	agents []agentSpending // by id
	types  []chart.Entry   // what each action type cost on each day

	memory    *pages.CacheMemory // for both of them
	displaced atomic.Bool
}

// spending is what an agent spent.
type spending struct{ Today, Month money.MicroUSD }

// agentSpending is what one agent spent.
type agentSpending struct {
	id uuid.UUID
	spending
}

const notKept = "What each agent and each action type cost is not in memory now. Reload the page later."

// agentsOf returns what each agent spent, by its id.
func agentsOf(by map[string]spending) ([]agentSpending, error) {
	all := make([]agentSpending, 0, len(by))
	for text, of := range by {
		id, err := uuid.Parse(text)
		if err != nil {
			return nil, errUnreadable
		}
		all = append(all, agentSpending{id, of})
	}
	slices.SortFunc(all, func(a, b agentSpending) int { return bytes.Compare(a.id[:], b.id[:]) })
	return all, nil
}

// by returns what an agent spent; nothing while that is not known.
func (s *spent) by(id uuid.UUID) spending {
	if s == nil {
		return spending{}
	}
	at, found := slices.BinarySearchFunc(s.agents, id, func(one agentSpending, id uuid.UUID) int { return bytes.Compare(one.id[:], id[:]) })
	if !found {
		return spending{}
	}
	return s.agents[at].spending
}

// typesOf returns the lines of a report by day and action type. Lines of a type share its name.
func typesOf(report []usageLine) []chart.Entry {
	types := make([]chart.Entry, 0, len(report))
	names := map[string]string{}
	for _, line := range report {
		day, err := time.Parse(time.DateOnly, line.Day)
		if err != nil {
			continue
		}
		name := cmp.Or(names[line.typeName()], line.typeName())
		names[name] = name
		types = append(types, chart.Entry{Day: dayNumber(day), Name: name, Value: int64(line.Value)})
	}
	return types
}

func dayNumber(t time.Time) int { return int(t.Unix() / (24 * 60 * 60)) }

// days returns the chart of what each action type cost in the last 30 days.
func (s *spent) days() chart.Days {
	today := dayNumber(s.At)
	return chart.Days{Title: "Spent by action type, last 30 days", Unit: chart.MicroUSD, From: today - 29, To: today, Entries: s.types}
}

// bytes returns how many bytes the reading takes, with what the allocator rounds up.
func (s *spent) bytes() int {
	const itself, ofName = 1 << 10, 16
	sum := itself + len(s.agents)*int(unsafe.Sizeof(agentSpending{})) + len(s.types)*int(unsafe.Sizeof(chart.Entry{}))
	names := map[string]bool{}
	for _, line := range s.types {
		if !names[line.Name] {
			names[line.Name] = true
			sum += ofName + len(line.Name)
		}
	}
	return sum + sum/8
}

// sums returns the reading without what agents and types cost.
func (s *spent) sums() *spent {
	return &spent{At: s.At, Total: s.Total, Problem: notKept, NoTypes: true, NoAgents: true}
}

// keep makes a reading the last one. Without memory for it only its sums are kept.
func (s *spendings) keep(next *spent) {
	s.shorten()
	sums := next.sums()
	next.memory = s.among.pool.Reserve(s.of.organization, next.bytes(), func() {
		next.displaced.Store(true)
		s.last.CompareAndSwap(next, sums)
	})
	s.last.Store(next)
	if next.memory == nil || next.displaced.Load() {
		s.last.CompareAndSwap(next, sums)
	}
	if s.idle != nil {
		s.idle.Reset(keptFor)
	}
}

// shorten leaves only the sums of the last reading.
func (s *spendings) shorten() {
	if last := s.last.Load(); last != nil && last.memory != nil && s.last.CompareAndSwap(last, last.sums()) {
		last.memory.Release()
	}
}

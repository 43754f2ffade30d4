package console

import (
	"bytes"
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
	types  typeSpending

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

// typeSpending is what each action type cost on each day.
type typeSpending struct {
	names []string
	lines []typeLine
}

type typeLine struct {
	day   int32  // since 1970, in UTC
	name  uint32 // in names
	value int64
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

// typesOf returns the lines of a report by day and action type.
func typesOf(report []usageLine) typeSpending {
	t := typeSpending{lines: make([]typeLine, 0, len(report))}
	numbers := map[string]uint32{}
	for _, line := range report {
		day, err := time.Parse(time.DateOnly, line.Day)
		if err != nil {
			continue
		}
		number, known := numbers[line.typeName()]
		if !known {
			number = uint32(len(numbers)) //nolint:gosec // of 10,000 lines
			numbers[line.typeName()] = number
			t.names = append(t.names, line.typeName())
		}
		t.lines = append(t.lines, typeLine{dayNumber(day), number, int64(line.Value)})
	}
	t.names = slices.Clip(t.names)
	return t
}

func dayNumber(t time.Time) int32 { return int32(t.Unix() / (24 * 60 * 60)) } //nolint:gosec // for millions of years

// days returns the chart of what each action type cost in the last 30 days.
func (s *spent) days() chart.Days {
	today := int(dayNumber(s.At))
	days := chart.Days{Title: "Spent by action type, last 30 days", Unit: chart.MicroUSD, From: today - 29, To: today}
	for _, line := range s.types.lines {
		days.Entries = append(days.Entries, chart.Entry{Day: int(line.day), Name: s.types.names[line.name], Value: line.value})
	}
	return days
}

// bytes returns how many bytes the reading takes, with what the allocator rounds up.
func (s *spent) bytes() int {
	const itself, ofName = 1 << 10, 16
	sum := itself + len(s.agents)*int(unsafe.Sizeof(agentSpending{})) + len(s.types.lines)*int(unsafe.Sizeof(typeLine{}))
	for _, name := range s.types.names {
		sum += int(unsafe.Sizeof(name)) + ofName + len(name)
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

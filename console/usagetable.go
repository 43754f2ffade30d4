package console

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/google/uuid"
	"remit/money"
	"remit/server/pages"
)

// usageTable is a report of usage in little memory: the newest days first, and of a day what cost most. Viewers share it.
type usageTable struct {
	At      time.Time
	Actions int64
	Value   money.MicroUSD
	Lines   int64 // of the report
	Cut     bool  // rows are only those of the first page

	rows []usageRow

	memory    *pages.CacheMemory // for the rows
	displaced atomic.Bool
}

// usageRow is a line of a report. What the report does not tell apart is zero.
type usageRow struct {
	day            int // since 1970
	agent, session uuid.UUID
	kind           *string // the action type, which rows share; nil for none
	actions        int64
	value          money.MicroUSD
}

func usageTableOf(lines []usageLine, at time.Time) *usageTable {
	t := &usageTable{At: at, Lines: int64(len(lines)), rows: make([]usageRow, len(lines))}
	kinds := map[string]*string{}
	for i, line := range lines {
		row := usageRow{actions: line.ActionCount, value: money.MicroUSD(line.Value)}
		if day, err := time.Parse(time.DateOnly, line.Day); err == nil {
			row.day = dayNumber(day)
		}
		row.agent, _ = uuid.Parse(line.AgentID)
		if line.SessionID != nil {
			row.session, _ = uuid.Parse(*line.SessionID)
		}
		if line.ActionType != nil {
			if kinds[*line.ActionType] == nil {
				kinds[*line.ActionType] = new(strings.Clone(*line.ActionType)) // without the text of the report
			}
			row.kind = kinds[*line.ActionType]
		}
		t.rows[i] = row
		t.Actions += row.actions
		t.Value += row.value
	}
	slices.SortStableFunc(t.rows, func(a, b usageRow) int {
		return cmp.Or(cmp.Compare(b.day, a.day), cmp.Compare(b.value, a.value), cmp.Compare(b.actions, a.actions),
			bytes.Compare(a.agent[:], b.agent[:]), bytes.Compare(a.session[:], b.session[:]))
	})
	return t
}

// bytes returns how many bytes the table takes, with what the allocator rounds up.
func (t *usageTable) bytes() int {
	const itself, ofName = 1 << 10, 32
	sum, kinds := itself+len(t.rows)*int(unsafe.Sizeof(usageRow{})), map[*string]bool{nil: true}
	for _, row := range t.rows {
		if !kinds[row.kind] {
			kinds[row.kind] = true
			sum += ofName + len(*row.kind)
		}
	}
	return sum + sum/8
}

// cut returns the table with the rows of its first page.
func (t *usageTable) cut() *usageTable {
	rows := slices.Clone(t.rows[:min(len(t.rows), usagePerPage)])
	return &usageTable{At: t.At, Actions: t.Actions, Value: t.Value, Lines: t.Lines, Cut: len(rows) < len(t.rows), rows: rows}
}

package console

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"remit/internal/chart"
)

const (
	mostDrawnDays = 92           // with a second group: a drawing has up to eight parts for each
	drawnNames    = 19           // of a drawing: all others are one
	unnamed       = "\U0010FFFF" // comes after every name of the same value
)

// draw draws the report: by day as bars, otherwise the largest lines.
func (p *usagePage) draw(names *usageNames) error {
	if len(p.Table.rows) == 0 {
		return nil
	}
	if slices.Contains(p.groups, "day") {
		return p.drawDays(names)
	}
	ranked := chart.Ranked{Title: "Spent by " + p.grouped(), Names: groupName(p.groups[0]), Value: "Spent", Unit: chart.MicroUSD}
	for i, row := range p.Table.rows {
		drawn := chart.Row{Name: unnamed, Value: int64(row.value)}
		if i < drawnNames+1 { // those beyond have no bar of their own
			var parts []string
			for _, group := range p.groups {
				cell, err := names.cell(row, group)
				if err != nil {
					return err
				}
				parts = append(parts, cell.Text)
				drawn.Link = cmp.Or(drawn.Link, cell.Link)
			}
			drawn.Name = strings.Join(parts, " · ")
		}
		ranked.Rows = append(ranked.Rows, drawn)
	}
	if len(p.groups) == 2 {
		ranked.Names += " · " + strings.ToLower(groupName(p.groups[1]))
	}
	p.Ranked = &ranked
	return nil
}

// grouped is what the lines tell apart, in words.
func (p *usagePage) grouped() string {
	var words []string
	for _, group := range p.groups {
		words = append(words, strings.ToLower(groupName(group)))
	}
	return strings.Join(words, " and ")
}

// drawDays draws a bar for each day, with a part for each of the largest of the other group.
func (p *usagePage) drawDays(names *usageNames) error {
	first, last, isRange := p.days()
	others := slices.DeleteFunc(slices.Clone(p.groups), func(group string) bool { return group == "day" })
	if !isRange || len(others) > 0 && last-first >= mostDrawnDays {
		return nil
	}
	days := chart.Days{Title: "Spent by " + p.grouped(), Unit: chart.MicroUSD, From: first, To: last}
	if len(others) == 0 {
		for _, row := range p.Table.rows {
			days.Entries = append(days.Entries, chart.Entry{Day: row.day, Name: "Spent", Value: int64(row.value)})
		}
		p.Days = &days
		return nil
	}
	named, err := p.largest(names, others[0])
	if err != nil {
		return err
	}
	for _, row := range p.Table.rows {
		days.Entries = append(days.Entries, chart.Entry{Day: row.day, Name: named[row.key(others[0])], Value: int64(row.value)})
	}
	p.Days = &days
	return nil
}

// days returns the days of the report since 1970.
func (p *usagePage) days() (first, last int, isRange bool) {
	from, err := time.Parse(time.DateOnly, p.From)
	to, failed := time.Parse(time.DateOnly, p.To)
	return dayNumber(from), dayNumber(to), err == nil && failed == nil
}

// largest names all of a group apart: those that cost most as people know them.
func (p *usagePage) largest(names *usageNames, group string) (map[string]string, error) {
	sums := map[string]int64{}
	of := map[string]usageRow{}
	for _, row := range p.Table.rows {
		key := row.key(group)
		sums[key] += int64(row.value)
		of[key] = row
	}
	named, taken := map[string]string{}, map[string]bool{}
	dearest := slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
	for i, key := range dearest {
		row, name := of[key], key
		if i <= drawnNames {
			cell, err := names.cell(row, group)
			if err != nil {
				return nil, err
			}
			if !taken[cell.Text] { // two agents may have one name
				name = cell.Text
			}
		}
		named[key], taken[name] = name, true
	}
	return named, nil
}

// key is what a line has of a group, as a text.
func (r usageRow) key(group string) string {
	switch group {
	case "agent":
		return r.agent.String()
	case "session":
		return r.session.String()
	}
	if r.kind == nil {
		return ""
	}
	return *r.kind
}

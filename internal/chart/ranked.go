package chart

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
)

const mostRows = 20 // the last one is all others

// Row is one bar of Ranked.
type Row struct {
	Name  string
	Link  string // a path of the same origin, which begins with one slash; none by default
	Value int64
}

// Ranked is a table of rows with bars, the largest value first: the 19 largest, and all others together.
type Ranked struct {
	Title        string
	Names, Value string // the heads of the columns
	Unit         Unit
	Rows         []Row
}

// HTML returns the table. Its figures are text, so the bars are hidden from screen readers.
func (r Ranked) HTML() template.HTML {
	rows := r.ranked()
	var out strings.Builder
	fmt.Fprintf(&out, `<table class="chart-ranked"><caption>%s</caption><thead><tr><th scope="col">%s</th><th scope="col">%s</th></tr></thead><tbody>`,
		heading(r.Title), heading(r.Names), heading(r.Value))
	for _, row := range rows {
		fmt.Fprintf(&out, `<tr><th scope="row">%s<svg class="chart-row" width="100%%" height="8" aria-hidden="true">`+
			`<rect class="chart-1" width="%s" height="8"/></svg></th><td>%s</td></tr>`,
			row.label(), percent(row.Value, max(rows[0].Value, 1)), r.Unit.Text(row.Value))
	}
	out.WriteString("</tbody></table>")
	return template.HTML(out.String())
}

// ranked returns the rows that are shown.
func (r Ranked) ranked() []Row {
	rows := slices.Clone(r.Rows)
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Link, b.Link))
	})
	if len(rows) <= mostRows {
		return rows
	}
	others := Row{Name: fmt.Sprintf("%d others", len(rows)-mostRows+1)}
	for _, row := range rows[mostRows-1:] {
		others.Value = plus(others.Value, row.Value)
	}
	return append(rows[:mostRows-1], others)
}

func (r Row) label() string {
	text := "<bdi>" + name(r.Name) + "</bdi>"
	if isLocal(r.Link) {
		return `<a href="` + html.EscapeString(r.Link) + `">` + text + "</a>"
	}
	return text
}

// isLocal reports whether a link is a path of the same origin. A browser reads a backslash as a slash, and leaves out tabs.
func isLocal(link string) bool {
	return strings.HasPrefix(link, "/") && !strings.HasPrefix(link, "//") &&
		!strings.ContainsFunc(link, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`\"<>`, r) })
}

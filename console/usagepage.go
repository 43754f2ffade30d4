package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/chart"
	"remit/money"
	"remit/server/pages"
)

const (
	usagePath    = Prefix + "/usage"
	usagePerPage = 50
	usualDays    = 30
)

// usagePage is what an organization used in some days, by one or two groups.
type usagePage struct {
	paging

	From, To, GroupBy, AgentID string
	Groupings                  []grouping
	Columns                    []string

	Table  *usageTable // nil while it is added up for the first time
	Shown  []usageShown
	Days   *chart.Days // one of them, or none
	Ranked *chart.Ranked
	groups []string
}

// grouping is a choice of what the lines tell apart.
type grouping struct{ Value, Name string }

var groupNames = []grouping{{"day", "Day"}, {"agent", "Agent"}, {"session", "Session"}, {"action_type", "Action type"}}

// groupings are all choices: each group, and each two.
func groupings() []grouping {
	all := slices.Clone(groupNames)
	for i, one := range groupNames {
		for _, other := range groupNames[i+1:] {
			all = append(all, grouping{one.Value + "," + other.Value, one.Name + " and " + strings.ToLower(other.Name)})
		}
	}
	return all
}

func groupName(value string) string {
	i := slices.IndexFunc(groupNames, func(g grouping) bool { return g.Value == value })
	if i < 0 {
		return ""
	}
	return groupNames[i].Name
}

// usageShown is a line of a report as the page shows it.
type usageShown struct {
	Cells   []usageCell
	Actions int64
	Value   money.MicroUSD
	Share   string
}

// usageCell is a group of a line.
type usageCell struct{ Label, Text, Full, Link string }

// askedUsage returns which report is asked for. What is typed is cut where nothing valid is so long.
func (v *visit) askedUsage() usageOf {
	asked := func(name, without string) string {
		text := cmp.Or(strings.TrimSpace(v.queryParam(name)), without)
		return strings.ToValidUTF8(text[:min(len(text), 64)], "")
	}
	of := usageOf{organization: v.who.Organization, to: asked("to", dayOf(v.now)), groupBy: asked("group_by", "day"), agent: asked("agent", "")}
	last, err := time.Parse(time.DateOnly, of.to)
	if err != nil {
		last = v.now
	}
	of.from = asked("from", dayOf(last.AddDate(0, 0, 1-usualDays)))
	return of
}

func showUsage(v *visit) error {
	of, number := v.askedUsage(), numberOf(v.queryParam("page"))
	page := usagePage{From: of.from, To: of.to, GroupBy: of.groupBy, AgentID: of.agent, Groupings: groupings(), groups: strings.Split(of.groupBy, ",")}
	var err error
	if page.Table, err = v.console.reports.latest(of, v.api.alone(), v.now, number == 0); err != nil {
		return err
	}
	if page.Table != nil {
		if err := page.fill(v, number); err != nil {
			return err
		}
	}
	return v.show("usage", "Usage", &page)
}

// fill fills one page of the table, and the drawing of all of it.
func (p *usagePage) fill(v *visit, number int) error {
	for _, group := range p.groups {
		p.Columns = append(p.Columns, groupName(group))
	}
	names := usageNames{api: v.api, known: map[string]string{}}
	rows := p.Table.rows
	from := min(number*usagePerPage, len(rows))
	for _, row := range rows[from:min(from+usagePerPage, len(rows))] {
		shown := usageShown{Actions: row.actions, Value: row.value, Share: shareText(int64(row.value), int64(p.Table.Value))}
		for _, group := range p.groups {
			cell, err := names.cell(row, group)
			if err != nil {
				return err
			}
			shown.Cells = append(shown.Cells, cell)
		}
		p.Shown = append(p.Shown, shown)
	}
	p.paging = pagedBy(number, usagePerPage, len(rows), func(n int) string { return p.Path("", "page", strconv.Itoa(n)) })
	if p.Table.Cut || number > 0 {
		return nil
	}
	sorting := &v.console.fleets.of(v.who.Organization).sorting // an organization draws one at a time
	sorting.Lock()
	defer sorting.Unlock()
	return p.draw(&names)
}

// Path returns the address of the report below that of the page.
func (p *usagePage) Path(below string, more ...string) string {
	return query(usagePath+below, append([]string{"from", p.From, "to", p.To, "group_by", p.GroupBy, "agent", p.AgentID}, more...)...)
}

// shareText returns how much of a whole a part is, for people; "–" where that means nothing.
func shareText(part, whole int64) string {
	if whole <= 0 || part < 0 {
		return "–"
	}
	thousandths := chart.Scale(part, 1000, whole)
	if thousandths == 0 && part > 0 {
		return "< 0.1 %"
	}
	return fmt.Sprintf("%d.%d %%", thousandths/10, thousandths%10)
}

// exportUsage answers with a report as a file, in the bytes that the API has for it.
func exportUsage(v *visit) error {
	of, format := v.askedUsage(), v.queryParam("format")
	if format != "json" {
		format = "csv"
	}
	path := query("/v1/usage", "from", of.from, "to", of.to, "group_by", of.groupBy, "agent_id", of.agent, "format", format)
	return v.api.call(pages.Call{Method: get, Path: path}, nil, func(r pages.Reply) {
		if r.Status != fasthttp.StatusOK {
			return
		}
		name := "remit-usage-" + of.from + "-" + of.to + "-by-" + strings.ReplaceAll(of.groupBy, ",", "-") + "." + format
		v.ctx.Response.Header.Set(fasthttp.HeaderContentDisposition, `attachment; filename="`+name+`"`) // the API has taken what it is made of
		v.ctx.Response.Header.SetContentType(r.Type)
		v.ctx.Response.SetBody(r.Body)
	})
}

// usageNames names what lines are about. It reads the name of each agent once.
type usageNames struct {
	api   api
	known map[string]string
}

func (n *usageNames) cell(row usageRow, group string) (usageCell, error) {
	cell := usageCell{Label: groupName(group)}
	switch group {
	case "day":
		cell.Text = dayOf(time.Unix(int64(row.day)*24*60*60, 0))
	case "agent":
		id := row.agent.String()
		name, err := n.api.agentName(n.known, id)
		if err != nil {
			return cell, err
		}
		cell.Text, cell.Full, cell.Link = cmp.Or(name, short(id)), id, agentPath(id)
	case "session":
		if cell.Text = "sessions no longer kept"; row.session != uuid.Nil {
			id := row.session.String()
			cell.Text, cell.Full, cell.Link = short(id), id, sessionPath(id)
		}
	case "action_type":
		if cell.Text = "without a type"; row.kind != nil {
			cell.Text, cell.Full = *row.kind, *row.kind
		}
	}
	return cell, nil
}

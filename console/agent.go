package console

import (
	"slices"
	"strconv"
	"strings"

	"remit/client"
	"remit/internal/chart"
)

// agentPage is one agent.
type agentPage struct {
	client.AgentInfo
	paging // of the families

	Families  []client.Family
	Sessions  []sessionRow
	Events    []eventRow
	Spending  chart.Days
	Spent     *spent // nil while it is added up for the first time
	Unspent   string // why that has failed so far; "" if it has not
	DayLimit  chart.Usage
	OpenLimit chart.Usage
}

// State is the status in one word.
func (p agentPage) State() string { return stateOf(p.Status, !p.SuspendedAt.IsZero()) }

const (
	shownSessions = "20" // of an agent
	shownFamilies = "50"
)

func showAgent(v *visit) error {
	id, seen := v.params["agent"], v.seen()
	page := agentPage{}
	if err := v.api.get("/v1/agents/"+id, &page.AgentInfo); err != nil {
		return err
	}
	id = page.ID
	cursor := v.queryParam("families")
	next, err := v.api.list(query("/v1/agents/"+id+"/families", "limit", shownFamilies, "cursor", cursor), &page.Families)
	if err != nil {
		return err
	}
	page.paging = v.paged(cursor, next, func(cursor, past string) string {
		return query(agentPath(id), "families", cursor, "past", past)
	})
	if page.Sessions, _, err = v.api.sessions(v.now, "agent_id", id, "limit", shownSessions); err != nil {
		return err
	}
	if page.Events, err = v.api.latest(id, v.now, func(eventRow) bool { return true }); err != nil {
		return err
	}
	page.readSpending(v)
	page.measure()
	v.live = liveAt(idsOf(page.Sessions), "agent", id, "list", "agent", "of", id, "after", seen, "spent", spentAt(page.Spent))
	return v.show("agent", page.Name, page)
}

// readSpending reads what the agent spent by day and action type. A page waits only a moment for that: the service makes one report
// of an organization at a time, and what stops an agent must not wait behind it.
func (p *agentPage) readSpending(v *visit) {
	p.Spent, p.Unspent = v.console.fleets.spendings(spentOf{v.who.Organization, p.ID}, v.now).latest(v.api.alone(), v.now)
	if p.Spent != nil {
		p.Spending = p.Spent.days()
	}
}

// measure prepares the bars of the agent's limits.
func (p *agentPage) measure() {
	if l, u := p.Limits, p.Usage; l != nil && u != nil {
		if l.MaxValuePerDay != nil && u.ValueUsedToday != nil {
			p.DayLimit = chart.Usage{Label: "Value today", Unit: chart.MicroUSD, Used: int64(*u.ValueUsedToday), Limit: int64(*l.MaxValuePerDay)}
		}
		if l.MaxOpenSessions != nil && u.OpenSessions != nil {
			p.OpenLimit = chart.Usage{Label: "Open sessions", Used: *u.OpenSessions, Limit: *l.MaxOpenSessions}
		}
	}
}

// typeName is the action type for people.
func (l usageLine) typeName() string {
	if l.ActionType == nil {
		return "without a type"
	}
	return *l.ActionType
}

const agentsPerPage = 50

// agentsPage is the list of agents.
type agentsPage struct {
	paging

	Query, State, Order string
	States              []string
	Shown               []agentRow
	Found, All          int64
	Truncated, Crowded  bool // there are more agents; because memory ran out
	Spent               *spent
	Unspent             string
}

// Known reports whether what each agent spent is known.
func (p agentsPage) Known() bool { return p.Spent != nil && !p.Spent.NoAgents }

func showAgents(v *visit) error {
	seen := v.seen()
	all, err := v.fleet()
	if err != nil {
		return err
	}
	page := agentsPage{
		Query: strings.TrimSpace(v.queryParam("q")), State: v.queryParam("state"), Order: v.queryParam("sort"),
		States: []string{statusActive, statusSuspended, statusRevoked},
		All:    int64(all.Agents.size), Truncated: all.Truncated(), Crowded: all.Crowded(), Spent: all.Spent, Unspent: all.Unspent,
	}
	if !slices.Contains(page.States, page.State) {
		page.State = ""
	}
	found := all.find(page.Query, page.State, page.Order)
	page.Found = int64(len(found))
	number := numberOf(v.queryParam("page"))
	from := min(number*agentsPerPage, len(found))
	page.Shown = rowsOf(found[from:min(from+agentsPerPage, len(found))])
	page.paging = pagedBy(number, agentsPerPage, len(found), func(n int) string {
		return query(Prefix+"/agents", "q", page.Query, "state", page.State, "sort", page.Order, "page", strconv.Itoa(n))
	})
	v.live = liveAt(nil, "about", aboutAgents, "after", seen, "spent", spentAt(page.Spent))
	return v.show("agents", "Agents", page)
}

// numberOf reads the number of a page, 0 for none.
func numberOf(text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

func agentPath(id string) string { return Prefix + "/agents/" + id }

package console

import (
	"cmp"
	"slices"
	"time"

	"remit/chart"
	"remit/client"
	"remit/money"
)

// overviewPage is what runs, what it spends, and what needs a look.
type overviewPage struct {
	Agents, Open, Pending int64
	Spent                 spending
	Held                  money.MicroUSD
	HeldPartly            bool // Held is of the newest pending transactions only
	Budget                *client.Budget
	BudgetBar             chart.Usage

	ByType   chart.Days
	ByAgent  chart.Ranked
	Added    *spent // nil while it is added up for the first time
	Unspent  string
	Refusals chart.Ranked
	Reading  bool // the events that are kept are still being read

	Look    attention
	Missing []string // what cannot be read now

	pending []client.TransactionInfo
}

// showOverview shows what can be read, and says what cannot.
func showOverview(v *visit) error {
	var page overviewPage
	var all fleet
	f, _ := v.console.follow(v) // without one the page says that events are not read
	for _, part := range []struct {
		what string
		read func() error
	}{
		{"The agents", func() (err error) { all, err = v.fleet(); return err }},
		{"The counts", func() error { return page.readCounts(v) }},
		{"What is held", func() error { return page.readHeld(v) }},
		{"The budget", func() error { return page.readBudget(v) }},
		{"What needs a look", func() error { return page.Look.read(v, f, all, page.fillRefusals(f, v.now), page.Budget) }},
	} {
		if err := part.read(); isUnauthorized(err) {
			return err
		} else if err != nil {
			page.Missing = append(page.Missing, part.what+" cannot be read now. "+v.console.explain(err).text())
		}
	}
	page.Look.readStuck(page.pending, v.now)
	page.fillSpending(v.now, all)
	v.live = liveAt(idsOf(page.Look.Near))
	return v.show("overview", "Overview", page)
}

func (p *overviewPage) readCounts(v *visit) error {
	var info client.OrganizationInfo
	err := v.api.get("/v1/organizations/"+v.who.Organization.String(), &info)
	p.Agents, p.Open, p.Pending = info.Usage["agents"], info.Usage["open_sessions"], info.Usage["pending_transactions"]
	return err
}

// heldPages is how many pages of 200 pending transactions are read.
const heldPages = 5

// readHeld adds what pending transactions hold, the newest thousand of them.
func (p *overviewPage) readHeld(v *visit) error {
	cursor := ""
	for range heldPages {
		var page []client.TransactionInfo
		next, err := v.api.list(query("/v1/transactions", "status", statusPending, "limit", "200", "cursor", cursor), &page)
		if err != nil {
			return err
		}
		for _, t := range page {
			p.Held += t.ValueHeld
		}
		p.pending = append(p.pending, page...)
		if cursor = next; next == "" {
			return nil
		}
	}
	p.HeldPartly = true
	return nil
}

func (p *overviewPage) readBudget(v *visit) error {
	var budget client.Budget
	err := v.api.get("/v1/budget", &budget)
	if isNotFound(err) {
		return nil
	}
	p.Budget, p.BudgetBar = &budget, budgetBar(budget)
	return err
}

func budgetBar(b client.Budget) chart.Usage {
	return chart.Usage{Label: "Budget", Unit: chart.MicroUSD, Used: int64(b.ValueUsed), Held: int64(b.ValueReserved), Limit: int64(b.MaxValue)}
}

// fillSpending fills what was spent today and in 30 days, by agent and by action type.
func (p *overviewPage) fillSpending(now time.Time, all fleet) {
	p.Unspent = all.Unspent
	if p.Added = all.Spent; p.Added == nil {
		return
	}
	p.ByType = daysOf("Spent by action type, last 30 days", now, all.Spent.ByType, usageLine.typeName)
	p.ByAgent = chart.Ranked{Title: "Spent by agent, last 30 days", Names: "Agent", Value: "Spent", Unit: chart.MicroUSD}
	for _, a := range all.Agents {
		if month := all.spentBy(a.ID).Month; month != 0 {
			p.ByAgent.Rows = append(p.ByAgent.Rows, chart.Row{Name: a.Name, Link: agentPath(a.ID), Value: int64(month)})
		}
	}
	p.Spent = all.Spent.Total
}

// otherCounts are what stats count besides refusals, with their texts.
var otherCounts = map[string][2]string{
	"transaction.expired":  {"hold expired unsettled", "holds expired unsettled"},
	"token.reuse_detected": {"refresh token was used twice: it may be stolen", "refresh tokens were used twice: they may be stolen"},
	wouldRefuse:            {"limit would have refused, in a session that observes", "limits would have refused, in sessions that observe"},
	"events.lost":          {"gap in the events: agents made more than were kept", "gaps in the events: agents made more than were kept"},
}

// fillRefusals fills the refusals of the last day, and returns all that was counted.
func (p *overviewPage) fillRefusals(f *follower, now time.Time) map[string]int64 {
	if p.Reading = true; f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.stats.last(now)
	p.Reading = !f.caught
	p.Refusals = chart.Ranked{Title: "Refused by limit, last 24 hours", Names: "Limit", Value: "Sessions and agents", Unit: chart.Count}
	for what, n := range last {
		if _, isOther := otherCounts[what]; !isOther {
			p.Refusals.Rows = append(p.Refusals.Rows, chart.Row{Name: cmp.Or(what, "other"), Value: n})
		}
	}
	slices.SortFunc(p.Refusals.Rows, func(a, b chart.Row) int { return cmp.Compare(a.Name, b.Name) })
	return last
}

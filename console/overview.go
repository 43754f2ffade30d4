package console

import (
	"cmp"
	"slices"
	"time"

	"remit/client"
	"remit/internal/chart"
	"remit/money"
)

// overviewPage is what runs, what it spends, and what needs a look.
type overviewPage struct {
	Agents, Open, Pending int64
	NoCounts              bool           // they cannot be read now
	Held, Leased          money.MicroUSD // Held contains Leased
	HeldPartly            bool           // more than these may be held
	NoHeld                bool
	Spent                 spending
	Budget                *client.Budget
	BudgetBar             chart.Usage

	ByType   chart.Days
	ByAgent  chart.Ranked
	NoAgents bool   // what each agent spent is not known
	Added    *spent // nil while it is added up for the first time
	Unspent  string
	Refusals chart.Ranked
	Reading  bool // the events that are kept are still being read

	Look    attention
	Missing []string // what cannot be read now

	pending []client.TransactionInfo // the newest first
}

// part is a part of a page that is shown without those that cannot be read.
type part struct {
	what string
	read func() error
}

const crowdedAgents = "Not all agents are looked at here: other organizations use the memory for that. Reload the page later."

// showOverview shows what can be read, and says what cannot.
func showOverview(v *visit) error {
	var page overviewPage
	var all fleet
	f, _ := v.console.follow(v) // without one the page says that events are not read
	seen := v.seen()
	parts := []part{
		{"The agents", func() (err error) { all, err = v.fleet(); page.NoAgents = err != nil; return err }},
		{"The counts", func() error { return page.readCounts(v) }},
		{"What is held", func() error { return page.readHeld(v, heldPages) }},
		{"The budget", func() error { return page.readBudget(v) }},
	}
	for _, part := range append(parts, page.Look.parts(v, f)...) {
		if err := part.read(); isUnauthorized(err) {
			return err
		} else if err != nil {
			page.Missing = append(page.Missing, part.what+" cannot be read now. "+v.console.explain(err).text())
		}
	}
	page.Look.fill(all, page.fillRefusals(f, v.now), page.Budget)
	page.addLeased(f, v.now) // after it: what has been read by then is all in
	page.Look.readStuck(page.pending, v.now)
	page.fillSpending(all)
	if all.Crowded() {
		page.Missing = append(page.Missing, crowdedAgents)
	}
	v.live = liveAt(idsOf(page.Look.Near), "about", aboutAll, "after", seen, "spent", spentAt(all.Spent), "reading", flagged(page.Reading))
	return v.show("overview", "Overview", page)
}

func (p *overviewPage) readCounts(v *visit) error {
	var info client.OrganizationInfo
	err := v.api.get("/v1/organizations/"+v.who.Organization.String(), &info)
	p.Agents, p.Open, p.Pending = info.Usage["agents"], info.Usage["open_sessions"], info.Usage["pending_transactions"]
	p.NoCounts = err != nil
	return err
}

// heldPages is how many pages of 200 pending transactions are read.
const heldPages = 5

// readHeld adds what pending transactions hold, the newest thousand of them and some of the older ones.
func (p *overviewPage) readHeld(v *visit, pages int) error {
	p.NoHeld = true // unless it returns
	isAll, err := v.api.pending("", pages, &p.pending)
	if err != nil {
		return err
	}
	isAll = isAll || !p.NoCounts && int64(len(p.pending)) >= p.Pending // the rest of the list is settled
	if p.HeldPartly = !isAll; !isAll {
		if err := p.readOlder(v); err != nil {
			return err
		}
	}
	for _, t := range p.pending {
		p.Held += t.ValueHeld
	}
	p.NoHeld = false
	return nil
}

// pending reads pages of the pending transactions, and reports whether these are all.
func (a api) pending(cursor string, pages int, into *[]client.TransactionInfo) (isAll bool, err error) {
	for range pages {
		var page []client.TransactionInfo
		path := query("/v1/transactions", "status", statusPending, "limit", "200", "cursor", cursor)
		if cursor, err = a.list(path, &page); err != nil {
			return false, err
		}
		if *into = append(*into, page...); cursor == "" {
			return true, nil
		}
	}
	return false, nil
}

// addLeased adds what is leased, which events tell.
func (p *overviewPage) addLeased(f *follower, now time.Time) {
	if f == nil {
		p.HeldPartly = true
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	leased, isAll := f.stats.leases.sum(now)
	p.Leased, p.HeldPartly = leased, p.HeldPartly || !isAll || !f.caught
	p.Held += leased
}

// pendingAges are ages of transactions, which last 30 days at most.
var pendingAges = []time.Duration{2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, dayTime, 4 * dayTime, 14 * dayTime}

const dayTime = 24 * time.Hour

// readOlder reads older pending transactions, when there are more than readHeld reads: for each age a page of those before it. The list
// begins with the newest, and also has those that are settled.
func (p *overviewPage) readOlder(v *visit) error {
	p.Look.StuckPartly = true
	known := map[string]bool{}
	for _, t := range p.pending {
		known[t.ID] = true
	}
	for _, age := range pendingAges {
		var older []client.TransactionInfo
		if _, err := v.api.pending(cursorBefore(v.now.Add(-age)), 1, &older); err != nil {
			return err
		}
		for _, t := range older {
			if !known[t.ID] {
				known[t.ID] = true
				p.pending = append(p.pending, t)
			}
		}
	}
	slices.SortStableFunc(p.pending, func(a, b client.TransactionInfo) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return nil
}

func (p *overviewPage) readBudget(v *visit) error {
	var set client.Budget
	err := v.api.get("/v1/budget", &set)
	if isNotFound(err) {
		return nil
	}
	if err == nil {
		p.Budget, p.BudgetBar = &set, budgetBar(set)
	}
	return err
}

func budgetBar(b client.Budget) chart.Usage {
	return chart.Usage{Label: "Budget", Unit: chart.MicroUSD, Used: int64(b.ValueUsed), Held: int64(b.ValueReserved), Limit: int64(b.MaxValue)}
}

// fillSpending fills what was spent today and in 30 days, by agent and by action type.
func (p *overviewPage) fillSpending(all fleet) {
	p.Unspent = all.Unspent
	if p.Added = all.Spent; p.Added == nil {
		return
	}
	p.NoAgents = p.NoAgents || all.Spent.NoAgents
	p.ByType = all.Spent.days()
	p.ByAgent = chart.Ranked{Title: "Spent by agent, last 30 days", Names: "Agent", Value: "Spent", Unit: chart.MicroUSD}
	for a, name := range all.Agents.all() {
		if month := all.Spent.by(a.id).Month; month != 0 {
			p.ByAgent.Rows = append(p.ByAgent.Rows, chart.Row{Name: name, Link: agentPath(a.id.String()), Value: int64(month)})
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

// fillRefusals fills the limits that were reached in the last day, and returns all that was counted.
func (p *overviewPage) fillRefusals(f *follower, now time.Time) map[string]int64 {
	if p.Reading = true; f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.stats.last(now)
	p.Reading = !f.caught
	p.Refusals = chart.Ranked{Title: "Limits reached, last 24 hours", Names: "Limit", Value: "Sessions and agents", Unit: chart.Count}
	for what, n := range last {
		if _, isOther := otherCounts[what]; !isOther {
			p.Refusals.Rows = append(p.Refusals.Rows, chart.Row{Name: cmp.Or(what, "other"), Value: n})
		}
	}
	slices.SortFunc(p.Refusals.Rows, func(a, b chart.Row) int { return cmp.Compare(a.Name, b.Name) })
	return last
}

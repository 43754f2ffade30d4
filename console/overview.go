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

// showOverview shows what can be read, and says what cannot.
func showOverview(v *visit) error {
	var page overviewPage
	var all fleet
	f, _ := v.console.follow(v) // without one the page says that events are not read
	parts := []part{
		{"The agents", func() (err error) { all, err = v.fleet(); page.NoAgents = err != nil; return err }},
		{"The counts", func() error { return page.readCounts(v) }},
		{"What is held", func() error { return page.readHeld(v, f, heldPages) }},
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
	page.Look.readStuck(page.pending, v.now)
	page.fillSpending(all)
	v.live = liveAt(idsOf(page.Look.Near))
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

// readHeld adds what pending transactions hold, the newest thousand of them, and what is leased.
func (p *overviewPage) readHeld(v *visit, f *follower, pages int) error {
	p.NoHeld = true // unless it returns
	isAll, err := v.api.pending("", pages, &p.pending)
	if err != nil {
		return err
	}
	for _, t := range p.pending {
		p.Held += t.ValueHeld
	}
	if p.addLeased(f, v.now); !isAll {
		p.HeldPartly = true
		if err := p.readOldest(v); err != nil {
			return err
		}
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
	if p.HeldPartly = true; f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	leased, isAll := f.stats.leases.sum(now)
	p.Leased, p.HeldPartly = leased, !isAll || !f.caught
	p.Held += leased
}

// pendingAges are ages of transactions, which last 30 days at most.
var pendingAges = []time.Duration{
	28 * dayTime, 14 * dayTime, 7 * dayTime, 3 * dayTime, dayTime, 8 * time.Hour, 2 * time.Hour, 30 * time.Minute, 8 * time.Minute, 2 * time.Minute,
}

const dayTime = 24 * time.Hour

// readOldest reads the oldest pending transactions, of which there are more than readHeld reads. The list begins with the newest, so it
// looks for an age at which one page has all that are older.
func (p *overviewPage) readOldest(v *visit) error {
	var oldest []client.TransactionInfo
	older := func(age time.Duration) (isEnough, isAll bool, err error) {
		var page []client.TransactionInfo
		isAll, err = v.api.pending(cursorBefore(v.now.Add(-age)), 1, &page)
		if isAll {
			oldest = page
		}
		return len(page) >= shownStuck, isAll, err
	}
	high, low := pendingAges[0], time.Duration(0)
	for i, age := range pendingAges {
		isEnough, isAll, err := older(age)
		if err != nil {
			return err
		}
		if !isAll {
			high, low = pendingAges[max(i-1, 0)], age
		}
		if isEnough || !isAll {
			break
		}
	}
	for range ageSteps {
		if low == 0 || len(oldest) >= shownStuck {
			break
		}
		middle := (high + low) / 2
		_, isAll, err := older(middle)
		if err != nil {
			return err
		}
		if isAll {
			high = middle
		} else {
			low = middle
		}
	}
	p.addOlder(oldest)
	return nil
}

// ageSteps is how often readOldest halves the time between two ages.
const ageSteps = 12

func (p *overviewPage) addOlder(oldest []client.TransactionInfo) {
	known := map[string]bool{}
	for _, t := range p.pending {
		known[t.ID] = true
	}
	p.Look.StuckPartly = true
	for _, t := range oldest {
		if !known[t.ID] {
			p.pending = append(p.pending, t)
		}
	}
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
	p.ByType = daysOf("Spent by action type, last 30 days", all.Spent.At, all.Spent.ByType, usageLine.typeName)
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

package faults

import (
	"encoding/json"

	"remit/money"
)

// leaseEvent is an event of the audit trail about a lease.
type leaseEvent struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Lease string `json:"lease_id"`
	Data  struct {
		Actions int64          `json:"action_count"`
		Leased  money.MicroUSD `json:"value_leased_usd"`
		Charged money.MicroUSD `json:"value_usd"`
		Overage money.MicroUSD `json:"overage_usd"`
	} `json:"data"`
}

// spending is a number of actions and their value.
type spending struct {
	actions int64
	value   money.MicroUSD
}

func (s spending) plus(o spending) spending {
	return spending{s.actions + o.actions, s.value + o.value}
}

// leaseFact is what is known at the end of the leases of a session, when none is open.
type leaseFact struct {
	granted, unknown int64 // charges of all holders
	killed           int   // holders
	trail            []leaseEvent
	stored           Session
}

// booked returns what leases were settled with, and those that never were, which count in full.
func (f *leaseFact) booked() (settled, unsettled spending, lost int) {
	open := map[string]spending{}
	for _, e := range f.trail {
		switch e.Type {
		case "lease.granted":
			open[e.Lease] = spending{e.Data.Actions, e.Data.Leased}
		case "lease.settled":
			delete(open, e.Lease)
			settled = settled.plus(spending{e.Data.Actions, e.Data.Charged})
		}
	}
	for _, l := range open {
		unsettled = unsettled.plus(l)
	}
	return settled, unsettled, len(open)
}

// checkLeases checks that every charge that a holder granted is in the usage once, that what a killed holder held counts in
// full, and that nothing else is there.
func checkLeases(id string, f leaseFact) []Violation {
	settled, unsettled, lost := f.booked()
	charges := func(n int64) spending { return spending{n, money.MicroUSD(n) * holderValue} }
	stored, whole := spending{f.stored.Actions, f.stored.Used}, settled.plus(unsettled)
	least, most := charges(f.granted), charges(f.granted+f.unknown).plus(unsettled)
	out := checkLimits("session "+id, f.stored)
	report := func(r Rule, format string, args ...any) {
		out = append(out, violationOf(r, "session "+id, format, args...))
	}
	if stored.actions < least.actions || stored.value < least.value {
		report(RuleLost, "%+v is stored, holders granted %+v", stored, least)
	}
	if stored.actions < whole.actions || stored.value < whole.value {
		report(RuleLost, "%+v is stored, leases were settled with %+v or not, of %+v", stored, settled, unsettled)
	}
	if stored.actions > most.actions || stored.value > most.value {
		report(RuleSurplus, "%+v is stored, holders granted at most %+v, with %+v unsettled", stored, most, unsettled)
	}
	if f.stored.Held != 0 {
		report(RuleSurplus, "%v USD are held, and no lease is open", f.stored.Held)
	}
	if lost > 0 && f.killed == 0 {
		report(RuleLost, "%d leases were not settled, and no holder was killed", lost)
	}
	return out
}

// readTrail reads the whole audit trail of an agent.
func (r *reader) readTrail(agent string) (trail []leaseEvent) {
	path := "/v1/agents/" + agent + "/events?limit=100"
	for from := path; ; {
		var page []leaseEvent
		if !r.get(from, &page) || len(page) == 0 {
			return trail
		}
		trail, from = append(trail, page...), path+"&after="+page[len(page)-1].ID
	}
}

// created reads the answer to a creation.
func created(body []byte) (made struct{ ID, Secret string }) {
	_ = json.Unmarshal(body, &made) // calls with no id are refused, and the caller reports that
	return made
}

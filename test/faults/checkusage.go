package faults

import (
	"maps"
	"slices"
	"time"

	"remit/money"
)

// Used is what a line of usage says.
type Used struct {
	Session string         `json:"session_id"` // "" in a line of a session's own usage
	Actions int64          `json:"action_count"`
	Value   money.MicroUSD `json:"value_usd"`
}

// checkUsage compares each session with its line in the organization's usage and with the sum of its own lines. Of a session that has
// or had children it shows their usage too, which is in theirs.
func checkUsage(stored Stored) []Violation {
	var out []Violation
	for _, id := range slices.Sorted(maps.Keys(stored.Sessions)) {
		s := stored.Sessions[id]
		if s.Delegated != nil {
			continue
		}
		for what, used := range map[string]Used{"the organization's usage": stored.Usage[id], "its own usage": stored.ByType[id]} {
			if used.Actions != s.Actions || used.Value != s.Used {
				out = append(out, violationOf(RuleUsage, "session "+id, "it shows %d actions and %v USD, %s %d and %v",
					s.Actions, s.Used, what, used.Actions, used.Value))
			}
		}
	}
	return out
}

// readUsage reads what the organization's usage and that of each session say. With the clock of Redis ahead, usage counted on a later day.
func (r *reader) readUsage(stored *Stored) {
	var lines []Used
	from, to := time.Now().UTC().AddDate(0, 0, -1), time.Now().UTC().AddDate(0, 0, 1)
	if r.get("/v1/usage?group_by=session&from="+from.Format(time.DateOnly)+"&to="+to.Format(time.DateOnly), &lines) {
		for _, line := range lines {
			stored.Usage[line.Session] = line
		}
	}
	for id := range stored.Sessions {
		var types []Used
		if !r.get("/sessions/"+id+"/usage", &types) {
			continue
		}
		var sum Used
		for _, used := range types {
			sum.Actions += used.Actions
			sum.Value += used.Value
		}
		stored.ByType[id] = sum
	}
}

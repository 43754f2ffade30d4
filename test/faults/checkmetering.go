package faults

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"remit/money"
)

// meteredFact is what is known of calls of models when all are over, and nothing is held for them any more.
type meteredFact struct {
	calls    []modelCall
	served   map[string][]servedCall // by the call's id: what the provider's ledger says
	paid     map[string][]payment    // by the call's id: its transactions
	sessions map[string]Session      // by the agent's number
	ended    map[string]bool         // agents that were ended, or their sessions
}

// servedCall is a call in a provider's ledger.
type servedCall struct {
	status int
	ended  bool // the provider has written all of its answer
	cost   money.MicroUSD
}

// payment is a transaction of a gateway.
type payment struct {
	status               string
	value, hold, overage money.MicroUSD
	byExpiry             bool // no settlement came before the hold expired
	late                 bool // it was settled when its hold had expired, and was spent
}

// checkMetering checks that every call with an answer costs what the provider's ledger says, that what is in doubt is spent in full, and
// that sessions have used what their calls cost, within their limits, and hold nothing.
func checkMetering(f meteredFact) (out []Violation) {
	made := map[string]bool{}
	for _, c := range f.calls {
		made[c.id] = true
		out = append(out, f.checkAnswer(c)...)
		out = append(out, f.checkCall(c)...)
	}
	for _, id := range slices.Sorted(maps.Keys(f.paid)) {
		if !made[id] {
			out = append(out, violationOf(RuleSurplus, "call "+id, "it was never made, and is paid: %v", f.paid[id]))
		}
	}
	for _, agent := range slices.Sorted(maps.Keys(f.sessions)) {
		out = append(out, f.checkSession(agent)...)
	}
	return out
}

// checkAnswer judges an answer on its own.
func (f *meteredFact) checkAnswer(c modelCall) []Violation {
	allowed := []int{0, http.StatusOK, http.StatusPaymentRequired, http.StatusServiceUnavailable}
	if agent, _, _ := strings.Cut(c.id, "-"); f.ended[agent] {
		allowed = append(allowed, http.StatusUnauthorized, http.StatusForbidden)
	}
	for _, status := range []int{429, 500, 504} {
		if c.fake == fmt.Sprintf("error=%d", status) || c.fake == "error=midway" && status == 500 {
			allowed = append(allowed, status)
		}
	}
	if c.gateway.fate == cut {
		allowed = append(allowed, http.StatusBadGateway)
	}
	if !slices.Contains(allowed, c.status) {
		return []Violation{violationOf(RuleAnswer, "call "+c.id, "%d %s", c.status, c.err)}
	}
	return nil
}

// checkCall compares what a call cost with the ledger.
func (f *meteredFact) checkCall(c modelCall) (out []Violation) {
	served, paid := f.served[c.id], f.paid[c.id]
	report := func(r Rule, format string, args ...any) {
		detail := fmt.Sprintf(format, args...)
		out = append(out, violationOf(r, "call "+c.id, "%s; %s; the ledger has %+v, paid is %+v", detail, c, served, paid))
	}
	switch {
	case len(served) > 1 || len(paid) > 1:
		report(RuleSurplus, "it was sent or held for more than once")
	case c.status == http.StatusServiceUnavailable && len(served) > 0:
		report(RuleSurplus, "it was refused and sent")
	case len(served) > 0 && len(paid) == 0:
		report(RuleLost, "it was sent and not paid")
	case c.status == http.StatusOK && len(served) == 0:
		report(RuleSurplus, "it was answered and not sent")
	case len(paid) == 0:
	case paid[0].overage != 0 || len(served) > 0 && served[0].ended && served[0].cost > paid[0].hold:
		report(RuleLimit, "it cost more than was held")
	default:
		wanted := c.wanted(served)
		if !slices.ContainsFunc(wanted, func(o outcome) bool { return paid[0].is(o, served) }) {
			report(RuleLedger, "it must be %s", wanted)
		}
	}
	return out
}

// outcome is what a call came to.
type outcome string

const (
	byLedger   outcome = "paid as the ledger says"
	byHold     outcome = "paid in full by the gateway"
	byExpiry   outcome = "paid in full when its hold expired"
	rolledBack outcome = "rolled back"
)

// wanted returns what a call must have come to. One whose answer has ended was settled before. Else a gateway that was killed may have
// settled nothing, and one that cut its calls all that was held.
func (c modelCall) wanted(served []servedCall) []outcome {
	wanted := []outcome{byLedger}
	switch {
	case len(served) == 0: // nothing was sent, or it is not known whether it was held for
		wanted = []outcome{rolledBack, byExpiry}
	case served[0].status == http.StatusGatewayTimeout, served[0].status < 400 && slices.Contains(uncounted, c.fake):
		wanted = []outcome{byHold}
	case served[0].status >= 400:
		wanted = []outcome{rolledBack}
	}
	switch {
	case c.ended:
	case c.gateway.fate == killed:
		wanted = append(wanted, byExpiry)
	case c.gateway.fate == cut:
		wanted = append(wanted, byHold)
	}
	return wanted
}

func (p payment) is(o outcome, served []servedCall) bool {
	settled := p.status == "committed" && !p.byExpiry
	switch o {
	case byLedger:
		return settled && served[0].ended && p.value == served[0].cost
	case byHold:
		return settled && p.value == p.hold
	case byExpiry:
		return p.status == "committed" && p.byExpiry && p.value == p.hold
	case rolledBack:
		return p.status == "rolled_back" || settled && p.late && p.value == 0 // what was spent at its expiry comes back
	}
	return false
}

// checkSession compares what an agent's session has used with what its calls cost.
func (f *meteredFact) checkSession(agent string) []Violation {
	stored, subject := f.sessions[agent], "session of agent "+agent
	out := checkLimits(subject, stored)
	var spent spending
	for id, payments := range f.paid {
		if of, _, _ := strings.Cut(id, "-"); of != agent {
			continue
		}
		for _, p := range payments {
			spent.actions++
			if p.status == "committed" {
				spent.value += p.value
			}
		}
	}
	if stored.Actions != spent.actions || stored.Used != spent.value {
		out = append(out, violationOf(RuleUsage, subject, "it has used %d actions and %s USD, its transactions %+v", stored.Actions, stored.Used, spent))
	}
	if stored.Held != 0 {
		out = append(out, violationOf(RuleSurplus, subject, "it holds %s USD, and no call is open", stored.Held))
	}
	return out
}

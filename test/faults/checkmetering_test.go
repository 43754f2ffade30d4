package faults

import (
	"slices"
	"testing"

	"remit/money"
)

// The ledger and what is paid are forged: each wrong one must be found, and the closest right one accepted. A hold is 100 micro-USD, and
// the ledger says 40.
func TestCheckMeteringFindsEachViolation(t *testing.T) {
	t.Parallel()
	alive, died, stopped := &Gateway{}, &Gateway{fate: killed}, &Gateway{fate: cut}
	whole, broken := modelCall{gateway: alive, status: 200, ended: true}, modelCall{gateway: alive, status: 200, hungUp: true}
	of := func(c modelCall, g *Gateway) modelCall { c.gateway = g; return c }
	served := []servedCall{{status: 200, ended: true, cost: 40}}
	paid := func(value money.MicroUSD) payment { return payment{status: "committed", value: value, hold: 100} }
	expired := payment{status: "committed", value: 100, hold: 100, byExpiry: true}
	undone := payment{status: "rolled_back", value: 100, hold: 100}
	failed := func(status int) []servedCall { return []servedCall{{status: status, ended: true}} }
	for _, tc := range []struct {
		name   string
		call   modelCall
		served []servedCall
		paid   []payment
		want   []Rule
	}{
		{"an answer costs what the ledger says", whole, served, []payment{paid(40)}, nil},
		{"an answer costs a micro-dollar more", whole, served, []payment{paid(41)}, []Rule{RuleLedger}},
		{"an answer costs all that was held", of(whole, stopped), served, []payment{paid(100)}, []Rule{RuleLedger}},
		{"an answer is left to the expiry", of(whole, died), served, []payment{expired}, []Rule{RuleLedger}},
		{"an answer costs nothing", whole, served, []payment{undone}, []Rule{RuleLedger}},
		{"an answer is not paid", whole, served, nil, []Rule{RuleLost}},
		{"an answer comes from nowhere", whole, nil, []payment{undone}, []Rule{RuleSurplus}},
		{"an answer is paid twice", whole, served, []payment{paid(40), paid(40)}, []Rule{RuleSurplus}},
		{"a call is sent twice", whole, slices.Concat(served, served), []payment{paid(40)}, []Rule{RuleSurplus}},
		{"it is still held for", whole, served, []payment{{status: "pending", value: 100, hold: 100}}, []Rule{RuleLedger}},
		{"it cost more than was held", whole, []servedCall{{status: 200, ended: true, cost: 101}}, []payment{paid(100)}, []Rule{RuleLimit}},
		{"a hang-up is read on", broken, served, []payment{paid(40)}, nil},
		{"a hang-up ends the call", broken, []servedCall{{status: 200, cost: 12}}, []payment{paid(100)}, []Rule{RuleLedger}},
		{"a hang-up costs what came", broken, []servedCall{{status: 200, cost: 12}}, []payment{paid(12)}, []Rule{RuleLedger}},
		{"a killed gateway settled before", of(broken, died), served, []payment{paid(40)}, nil},
		{"a killed gateway settled nothing", of(broken, died), served, []payment{expired}, nil},
		{"a killed gateway gives money back", of(broken, died), served, []payment{undone}, []Rule{RuleLedger}},
		{"the expiry spends a part", of(broken, died), served, []payment{{status: "committed", value: 40, hold: 100, byExpiry: true}}, []Rule{RuleLedger}},
		{"a gateway that lives settles nothing", broken, served, []payment{expired}, []Rule{RuleLedger}},
		{"a stop cuts the call", of(broken, stopped), []servedCall{{status: 200, cost: 12}}, []payment{paid(100)}, nil},
		{"an error costs nothing", modelCall{gateway: alive, fake: "error=500", status: 500, ended: true}, failed(500), []payment{undone}, nil},
		{"it costs nothing once its hold was spent", modelCall{gateway: alive, fake: "error=500", status: 500, ended: true}, failed(500),
			[]payment{{status: "committed", hold: 100, late: true}}, nil},
		{"an error is paid", modelCall{gateway: alive, fake: "error=500", status: 500, ended: true}, failed(500), []payment{paid(100)}, []Rule{RuleLedger}},
		{"an error of no provider", modelCall{gateway: alive, status: 500, ended: true}, failed(500), []payment{undone}, []Rule{RuleAnswer}},
		{"a time limit elsewhere costs all", modelCall{gateway: alive, fake: "error=504", status: 504, ended: true}, failed(504), []payment{paid(100)}, nil},
		{"an answer without usage costs all", modelCall{gateway: alive, fake: "usage=missing", status: 200, ended: true}, served, []payment{paid(100)}, nil},
		{"an answer without usage is guessed", modelCall{gateway: alive, fake: "usage=missing", status: 200, ended: true}, served, []payment{paid(40)}, []Rule{RuleLedger}},
		{"a begin is in doubt", modelCall{gateway: alive, status: 503, ended: true}, nil, []payment{expired}, nil},
		{"a refused call is sent", modelCall{gateway: alive, status: 503, ended: true}, served, []payment{paid(40)}, []Rule{RuleSurplus}},
		{"a limit refuses", modelCall{gateway: alive, status: 402, ended: true}, nil, nil, nil},
	} {
		tc.call.id = "7-0"
		used := Session{Actions: int64(len(tc.paid)), MaxActions: 9, MaxValue: 1000}
		for _, p := range tc.paid {
			if p.status == "committed" {
				used.Used += p.value
			}
		}
		f := meteredFact{calls: []modelCall{tc.call}, served: map[string][]servedCall{"7-0": tc.served}, paid: map[string][]payment{"7-0": tc.paid}, sessions: map[string]Session{"7": used}}
		if got := rulesOf(checkMetering(f)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	for rule, s := range map[Rule]Session{
		RuleUsage:   {Actions: 1, MaxActions: 9, Used: 41, MaxValue: 1000},
		RuleSurplus: {Actions: 1, MaxActions: 9, Used: 40, Held: 1, MaxValue: 1000},
		RuleLimit:   {Actions: 1, MaxActions: 9, Used: 40, MaxValue: 39},
	} {
		whole.id = "7-0"
		f := meteredFact{calls: []modelCall{whole}, served: map[string][]servedCall{"7-0": served}, paid: map[string][]payment{"7-0": {paid(40)}}, sessions: map[string]Session{"7": s}}
		if got := rulesOf(checkMetering(f)); !slices.Equal(got, []Rule{rule}) {
			t.Errorf("%+v: %q, want %q", s, got, rule)
		}
		f.calls = nil
		if got := rulesOf(checkMetering(f)); len(got) != 2 || got[0] != RuleSurplus {
			t.Errorf("a call that was never made: %q", got)
		}
	}
}

package faults

import (
	"testing"

	"remit/money"
)

// A worker that gives up repeating a settlement may end with a refusal, though an earlier try has happened.
func TestARenewalHasTheOutcomeOfAllTriesOfItsSettlement(t *testing.T) {
	t.Parallel()
	settled := func(outcome Outcome, status int) Call {
		return with(leased(Settle, outcome), func(c *Call) { c.Subject, c.Status, c.Code = "lease", status, "a_code" })
	}
	asked := Effect{Actions: 2, Held: money.USD}
	for _, tc := range []struct {
		name  string
		tries []Call
		want  Outcome
	}{
		{"refused", []Call{settled(Refused, 503)}, Refused},
		{"unknown, then unavailable", []Call{settled(Unknown, 0), settled(Refused, 503)}, Unknown},
		{"unavailable, then unknown", []Call{settled(Refused, 503), settled(Unknown, 0)}, Unknown},
		{"unknown, then unauthorized", []Call{settled(Unknown, 0), settled(Refused, 401)}, Unknown},
		{"unknown, then refused for good", []Call{settled(Unknown, 0), settled(Refused, 409)}, Refused},
	} {
		h := NewHistory()
		for _, c := range tc.tries {
			h.Add(c)
		}
		w := &worker{Workers: &Workers{caller: &Caller{history: h}}}
		w.settleRenewal("s", tc.tries[len(tc.tries)-1], nil, asked)
		noted := h.Calls()[len(tc.tries):]
		if len(noted) != 1 || noted[0].Kind != Grant || noted[0].Effect != asked || noted[0].Outcome != tc.want {
			t.Errorf("%s: the renewal is noted as %+v, want %s", tc.name, noted, tc.want)
		}
	}
}

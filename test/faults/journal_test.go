package faults

import (
	"strings"
	"testing"

	"remit/money"
)

func TestAViolationOfASessionShowsItsCalls(t *testing.T) {
	t.Parallel()
	lost := with(at(1_000_000, 2_000_000, charged(Unknown, "k")), func(c *Call) { c.Instance, c.Status, c.Code, c.Err = "http://i", 0, "", "EOF" })
	calls := []Call{
		lost, with(charged(OK, "k"), func(c *Call) { c.Replayed = true }),
		with(charged(OK, ""), func(c *Call) { c.Session = "another" }),
		with(leased(Settle, OK), func(c *Call) { c.Subject, c.Effect = "lease", Effect{Actions: 1} }),
		{Kind: Settle, Subject: "lease", Key: "again", Outcome: OK, Status: 200}, // which has no effect of its own
		{Kind: Read, Outcome: OK, Status: 200},
	}
	all := stored(9)
	all.Sessions["another"] = stored(1).Sessions["s"]
	found := Check(calls, withUsage(all))
	if len(found) != 2 || !strings.HasPrefix(found[0].Detail, "9 actions are stored, at most 2 ") {
		t.Fatalf("violations %v", found)
	}
	lines := strings.Split(found[0].Detail, "\n\t")
	if len(lines) != 5 || !strings.HasSuffix(lines[0], "its calls, 4 of 4:") {
		t.Errorf("%d lines: %s", len(lines), found[0].Detail)
	}
	want := `1ms to 2ms at http://i: charge of "", key "k", +1 actions, +1000000 used, +0 held: unknown (status 0, code "", replayed false, error "EOF")`
	if lines[1] != want {
		t.Errorf("a call is shown as\n%s, want\n%s", lines[1], want)
	}
	for i, part := range []string{`ok (status 200, code "", replayed true`, `settle of "lease"`, `key "again"`} {
		if !strings.Contains(lines[i+2], part) {
			t.Errorf("line %d is %q, want %q", i+2, lines[i+2], part)
		}
	}
	if strings.Contains(found[1].Detail, "\n") {
		t.Errorf("the calls are shown twice: %s", found[1].Detail)
	}
}

func TestTheCallsThatAViolationShowsAreBounded(t *testing.T) {
	t.Parallel()
	var calls []Call
	for range mostShown {
		calls = append(calls, charged(OK, ""))
	}
	if got := journalOf("s", calls); strings.Count(got, "\n") != mostShown {
		t.Errorf("%d calls are shown as %s", len(calls), got)
	}
	calls = append(calls, charged(Unknown, "k"), charged(Refused, "k"), charged(OK, "k"), charged(Refused, ""))
	if got := journalOf("s", calls); !strings.HasPrefix(got, "its calls, 4 of 64:") || strings.Count(got, "\n") != 4 {
		t.Errorf("the calls in doubt are shown as %s", got)
	}
	for range 2 * mostShown {
		calls = append(calls, charged(Unknown, ""))
	}
	if got := journalOf("s", calls); strings.Count(got, "\n") != mostShown || strings.Contains(got, `"k"`) {
		t.Errorf("of too many in doubt are shown %s", got)
	}
}

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

package fleet

import (
	"strings"
	"testing"
	"time"

	"remit/client"
	"remit/money"
)

// givenRun returns a run that charges a session of a faulty service. The session is suspended if asked for.
func givenRun(t *testing.T, f fault, suspended bool) config {
	t.Helper()
	addr := startFaulty(t, f)
	remit := must(client.New(addr, client.Options{}))(t)
	org := remit.Organization(string(must(remit.CreateOrganization(t.Context(), client.OrganizationParams{Name: "given"}))(t).APIKey))
	agent := must(org.CreateAgent(t.Context(), client.AgentParams{Name: "scout", Scopes: []string{"write"}}))(t)
	made := must(org.CreateSession(t.Context(), client.SessionParams{AgentID: agent.ID, MaxActions: 100, MaxValue: new(1000 * money.USD)}))(t)
	if suspended {
		must(org.SuspendSession(t.Context(), made.ID, ""))(t)
	}
	return config{
		agents: 1, sessions: 1, rate: 500, duration: 300 * time.Millisecond, addr: addr, session: made.ID, agent: agent.ID, secret: string(agent.Secret),
	}
}

func TestAGivenSessionIsChargedAndReconciled(t *testing.T) {
	for name, test := range map[string]struct {
		fault     fault
		suspended bool
		code      int
		says      string
	}{
		"honest":        {noFault, false, exitReconciled, "refused for max_actions"},
		"suspended":     {noFault, true, exitReconciled, "refused with 403 session_suspended"},
		"charges twice": {chargesTwice, false, exitFailed, string(ruleSurplus)},
		"loses charges": {losesCharges, false, exitFailed, string(ruleLost)},
		"unknown":       {failsAfterCharge, false, exitReconciled, "outcome unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, report, progress := ran(t.Context(), givenRun(t, test.fault, test.suspended))
			if code != test.code || requests(report, test.says) == 0 && !strings.Contains(report, test.says+":") {
				t.Errorf("exit code %d, want %d and %q in\n%s%s", code, test.code, test.says, report, progress)
			}
		})
	}
}

func TestAnInterruptedRunOnAGivenSessionIsReconciled(t *testing.T) {
	t.Parallel()
	ctx, interrupts := untilCharges(t)
	cfg := givenRun(t, interrupts, false)
	cfg.duration = time.Minute
	if code, report, progress := ran(ctx, cfg); code != exitReconciled || requests(report, "acknowledged") == 0 {
		t.Errorf("exit code %d\n%s%s", code, report, progress)
	}
}

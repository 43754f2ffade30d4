package fleet

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"remit/client"
	"remit/money"
)

// givenRun returns a run that charges a session of a fake service. The session is suspended if asked for.
func givenRun(t *testing.T, f fault, suspended bool) config {
	t.Helper()
	addr := startFake(t, f)
	remit := must(client.New(addr, client.Options{}))(t)
	org := remit.Organization("word")
	agent := must(org.CreateAgent(t.Context(), client.AgentParams{Name: "scout"}))(t)
	made := must(org.CreateSession(t.Context(), client.SessionParams{AgentID: agent.ID, MaxActions: 100, MaxValue: new(1000 * money.USD)}))(t)
	if suspended {
		must(org.SuspendSession(t.Context(), made.ID, ""))(t)
	}
	return config{agents: 1, sessions: 1, rate: 500, duration: 300 * time.Millisecond, addr: addr, session: made.ID, agent: agent.ID, secret: "word"}
}

func TestAGivenSessionIsChargedAndReconciled(t *testing.T) {
	for name, test := range map[string]struct {
		fault     fault
		suspended bool
		code      int
		says      string
	}{
		"honest":        {honest, false, exitReconciled, "refused for max_actions"},
		"suspended":     {honest, true, exitReconciled, "refused with 403 session_suspended"},
		"charges twice": {chargesTwice, false, exitFailed, string(ruleSurplus)},
		"loses charges": {losesCharges, false, exitFailed, string(ruleLost)},
		"unknown":       {failsAfterCharge, false, exitReconciled, "outcome unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), givenRun(t, test.fault, test.suspended), &stdout, &stderr)
			if code != test.code || requests(stdout.String(), test.says) == 0 && !strings.Contains(stdout.String(), test.says+":") {
				t.Errorf("exit code %d, want %d and %q in\n%s%s", code, test.code, test.says, &stdout, &stderr)
			}
		})
	}
}

func TestAnInterruptedRunOnAGivenSessionIsReconciled(t *testing.T) {
	t.Parallel()
	cfg := givenRun(t, honest, false)
	cfg.duration = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, cfg, &stdout, &stderr); code != exitReconciled || requests(stdout.String(), "acknowledged") == 0 {
		t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
}

func TestARunOnAGivenSessionNeedsItsServiceAndAgent(t *testing.T) {
	for _, test := range []struct{ args, agent, says string }{
		{"-session x", "a", "needs the -addr"},
		{"-session x -addr http://127.0.0.1:1", "", "needs its agent in $REMIT_AGENT"},
		{"-session x -addr http://127.0.0.1:1 -scenario tree", "a", "not with -scenario tree"},
		{"-session x -addr http://127.0.0.1:1 -report x.html", "a", "not with -report"},
		{"-session x -addr http://192.0.2.1:8080", "a", "not this machine"},
	} {
		t.Setenv("REMIT_AGENT", test.agent)
		t.Setenv("REMIT_SECRET", "word")
		var stderr bytes.Buffer
		if _, err := parseConfig(strings.Fields(test.args), &stderr); err == nil || !strings.Contains(stderr.String(), test.says) {
			t.Errorf("%s: error %v, says %q, want %q", test.args, err, &stderr, test.says)
		}
	}
}

package faults

import (
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/test/suite"
)

// Gateways are killed and stopped under agents that call models and hang up, and Redis is killed: each call costs what the provider's own
// ledger says, and what is in doubt all that was held.
func TestGatewaysReconcileWithTheProvidersLedger(t *testing.T) {
	t.Parallel()
	setup, faults, between, away := MeteringSetup{Agents: 20, Calls: 15, AtOnce: 24}, 3, 50, time.Duration(0)
	if suite.Long {
		setup, faults, between, away = MeteringSetup{Agents: 200, Calls: 50, AtOnce: 64, Slow: true}, rounds(12), 700, holdTime+time.Second
	}
	redis, s := onRedis(t, redisproc.Config{Fsync: "always"}, Setup{Workers: 1})
	m := s.StartMetering(setup)
	for n := range faults {
		m.AwaitCalls(between)
		switch place := n / 3 % 2; n % 3 {
		case 0:
			m.KillGateway(place)
		case 1:
			m.KillRedis(redis, away)
			away = 0
			m.EndAgents()
		case 2:
			m.StopGateway(1-place, n%2 == 0)
		}
	}
	fact := m.Finish()
	n := fact.count()
	if n.fitted == 0 || n.refused == 0 || n.hungUpPaid == 0 || n.outcomes[byExpiry] == 0 || n.outcomes[byHold] == 0 || n.outcomes[rolledBack] == 0 {
		t.Errorf("something did not happen: %+v", n)
	}
	s.Finish()
}

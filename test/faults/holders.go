package faults

import (
	"time"

	"remit/money"
)

// Holders are processes that share a session by leases. Their totals are checked apart from the fleet's, because only they
// know what they charged.
type Holders struct {
	s       *Scenario
	agent   *Agent
	session string
	all     []*Holder // also the killed ones
	live    []*Holder
}

// StartHolders starts so many holders of a session of its own. Each uses another instance.
func (s *Scenario) StartHolders(n int, maxActions int64) *Holders {
	s.t.Helper()
	_, body := s.Caller.Do(s.Instances[0].URL, s.Fixture.createAgent())
	made := created(body)
	h := &Holders{s: s, agent: &Agent{ID: made.ID, Secret: made.Secret}}
	r := s.Fixture.createSession(made.ID, maxActions, money.MicroUSD(maxActions)*holderValue*2)
	call, body := s.Caller.Do(s.Instances[0].URL, r)
	if h.session = created(body).ID; call.Outcome != OK {
		s.t.Fatalf("session of the holders: %d %s", call.Status, body)
	}
	for range n {
		h.start()
	}
	h.AwaitGranted(10 * n)
	return h
}

func (h *Holders) start() {
	instance := h.s.Instances[len(h.all)%len(h.s.Instances)].URL
	started := startHolder(h.s.t, instance, h.agent, h.session)
	h.all, h.live = append(h.all, started), append(h.live, started)
}

// Kill kills a holder that has just charged its lease, and starts another.
func (h *Holders) Kill() {
	h.s.t.Helper()
	doomed := h.live[0]
	granted := doomed.count(lineGranted)
	h.await("a charge of the holder to kill", func() bool { return doomed.count(lineGranted) > granted })
	doomed.Kill()
	h.live = h.live[1:]
	h.start()
}

func (h *Holders) count(kind string) (n int64) {
	for _, holder := range h.all {
		n += holder.count(kind)
	}
	return n
}

// AwaitGranted returns when holders have granted so many more charges.
func (h *Holders) AwaitGranted(more int) {
	h.s.t.Helper()
	want := h.count(lineGranted) + int64(more)
	h.await("charges of holders", func() bool { return h.count(lineGranted) >= want })
}

// AwaitUsedUp returns when the session has refused every live holder.
func (h *Holders) AwaitUsedUp() {
	h.s.t.Helper()
	for _, holder := range h.live {
		h.await("the end of the session's limit", func() bool { return holder.count(lineLimit) > 0 })
	}
}

func (h *Holders) await(what string, is func() bool) {
	h.s.t.Helper()
	for deadline := time.Now().Add(workPatience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.s.t.Fatalf("no %s after %v", what, workPatience)
		}
	}
}

// Finish closes all leases, waits until those of killed holders have expired, and checks the totals. It returns them.
func (h *Holders) Finish() (fact leaseFact) {
	h.s.t.Helper()
	for _, holder := range h.live {
		if err := holder.close(); err != nil {
			h.s.t.Errorf("a holder did not close its lease: %v", err)
		}
	}
	r := reader{caller: h.s.Caller, instance: h.s.Instances[0].URL, key: h.s.Fixture.APIKey}
	h.await("end of the killed holders' leases", func() bool {
		return !r.get("/sessions/"+h.session, &fact.stored) || fact.stored.Held == 0
	})
	fact.trail = r.readTrail(h.agent.ID)
	if r.err != nil {
		h.s.t.Fatal(r.err)
	}
	fact.granted, fact.unknown, fact.killed = h.count(lineGranted), h.count(lineUnknown), len(h.all)-len(h.live)
	for _, v := range checkLeases(h.session, fact) {
		h.s.t.Error(v)
	}
	settled, unsettled, lost := fact.booked()
	h.s.t.Logf("holders: %d charges granted, %d unknown, %d refused, %d beyond the limit; leases settled with %+v, %d unsettled with %+v; stored %+v",
		fact.granted, fact.unknown, h.count(lineRefused), h.count(lineLimit), settled, lost, unsettled, fact.stored)
	return fact
}

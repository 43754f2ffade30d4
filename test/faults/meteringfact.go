package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"remit/client"
	"remit/client/prices"
	"remit/money"
)

// readFact reads the ledgers, and waits until nothing is held to read what is stored.
func (m *Metering) readFact(ctx context.Context) meteredFact {
	f := meteredFact{calls: m.calls, served: map[string][]servedCall{}, paid: map[string][]payment{}, sessions: map[string]Session{}, ended: m.ended}
	for n, t := range m.tenants {
		m.readLedger(n, t, &f)
	}
	var mu sync.Mutex
	m.each(func(n int) error {
		session, paid, err := m.agents[n].read(ctx)
		mu.Lock()
		defer mu.Unlock()
		f.sessions[strconv.Itoa(n)] = session
		maps.Copy(f.paid, paid)
		return err
	})
	return f
}

// readLedger adds the ledger of a tenant's provider.
func (m *Metering) readLedger(n int, t *tenant, f *meteredFact) {
	for _, r := range t.provider.Ledger() {
		agent, attempt, _ := strings.Cut(r.ID, "-")
		if number, err := strconv.Atoi(agent); err != nil || number%len(m.tenants) != n || r.Model != "" && r.Model != "m-"+attempt {
			m.s.t.Errorf("the provider of organization %d has a call that is not its own: %+v", n, r)
		}
		served := servedCall{status: r.Status, ended: r.Ended}
		if r.Status < 400 {
			var err error
			if served.cost, err = m.table.Cost(r.Model, prices.Usage(r.Usage)); err != nil {
				m.s.t.Errorf("call %s has no price: %v", r.ID, err)
			}
		}
		f.served[r.ID] = append(f.served[r.ID], served)
	}
}

// read returns what is stored of an agent, once its session holds nothing: its session, and its transactions by the calls' ids.
func (a *meteredAgent) read(ctx context.Context) (s Session, paid map[string][]payment, err error) {
	if s, err = a.readSession(ctx); err != nil {
		return s, nil, err
	}
	holds, err := a.holds(ctx)
	if err != nil {
		return s, nil, err
	}
	expired := map[string]bool{} // by the list of what expiry settled
	for t, err := range a.of.Transactions(ctx, client.TransactionFilter{SessionID: a.session, SettledBy: byTime}) {
		if err != nil {
			return s, nil, err
		}
		expired[t.ID] = true
	}
	paid = map[string][]payment{}
	for t, err := range a.of.Transactions(ctx, client.TransactionFilter{SessionID: a.session}) {
		if err != nil {
			return s, nil, err
		}
		attempt, isModel := strings.CutPrefix(t.ActionType, "llm.m-")
		hold, isBegun := holds[t.ID]
		if !isModel || !isBegun || t.HeldBy != "gateway" || t.Reversible || (t.SettledBy == byTime) != expired[t.ID] {
			return s, nil, fmt.Errorf("a transaction is not as a gateway begins it, or not in the list of what expiry settled: %+v", t)
		}
		id := fmt.Sprintf("%d-%s", a.number, attempt)
		paid[id] = append(paid[id], payment{t.Status, t.Value, hold, t.Overage, t.SettledBy == byTime, t.Late})
	}
	return s, paid, nil
}

// byTime is what settled a transaction whose hold has expired.
const byTime = "expiry"

// releaseTime bounds how long after its expiry a hold may still be seen.
const releaseTime = time.Minute

// readSession reads the agent's session, once it holds nothing.
func (a *meteredAgent) readSession(ctx context.Context) (Session, error) {
	for ends := time.Now().Add(holdTime + releaseTime); ; time.Sleep(50 * time.Millisecond) {
		info, err := a.of.GetSession(ctx, a.session)
		if err != nil || info.ValueHeld == 0 || time.Now().After(ends) {
			return Session{
				Actions: info.ActionCount, MaxActions: info.MaxActions, Used: info.ValueUsed, Held: info.ValueHeld, MaxValue: info.MaxValue,
			}, err
		}
	}
}

// holds returns what was held for each transaction, by the audit trail.
func (a *meteredAgent) holds(ctx context.Context) (map[string]money.MicroUSD, error) {
	holds := map[string]money.MicroUSD{}
	for e, err := range a.of.ListEvents(ctx, a.id, "") {
		if err != nil {
			return nil, err
		}
		if e.Type != "transaction.begun" {
			continue
		}
		var data struct {
			Held money.MicroUSD `json:"value_held_usd"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return nil, fmt.Errorf("event %s: %w", e.ID, err)
		}
		holds[e.TransactionID] = data.Held
	}
	return holds, nil
}

// meteredCounts are how many calls came to what.
type meteredCounts struct {
	answered, fitted, refused, unavailable, hungUp, hungUpPaid, late int
	outcomes                                                         map[outcome]int
}

// count counts calls. Those that a hang-up left to the gateway, and that were paid as the ledger says, show that it read on.
func (f *meteredFact) count() meteredCounts {
	n := meteredCounts{outcomes: map[outcome]int{}}
	add := func(to *int, is bool) {
		if is {
			*to++
		}
	}
	for _, c := range f.calls {
		add(&n.answered, c.ended && c.status == 200)
		add(&n.fitted, c.fitted)
		add(&n.refused, c.status == 402)
		add(&n.unavailable, c.status == 503)
		add(&n.hungUp, c.hungUp)
		for _, p := range f.paid[c.id] {
			add(&n.late, p.late)
			for _, o := range []outcome{byLedger, byHold, byExpiry, rolledBack} {
				if (o != byLedger || len(f.served[c.id]) > 0) && p.is(o, f.served[c.id]) {
					n.outcomes[o]++
					add(&n.hungUpPaid, o == byLedger && c.hungUp)
					break
				}
			}
		}
	}
	return n
}

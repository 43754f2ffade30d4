package redisstore

import (
	"strings"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// The fields of a lease by their index in the replies of budgets/block/lease_state.lua.
const (
	leaseAgent = iota
	leaseSession
	leaseActions
	leaseValue
	leaseCreated
	leaseExpires
	leaseUsedActions
	leaseUsedValue
	leaseOverActions
	leaseOverValue
	leaseSettledAt
	leaseLate
	renewalID
	renewalActions
	renewalValue
	renewalExpires
	renewalRefusal
	leaseChargedOver
)

// leaseFields are the fields of a lease's hash in this order.
var leaseFields = []string{
	leaseAgent: "a", leaseSession: "s", leaseActions: "n", leaseValue: "v", leaseCreated: "b", leaseExpires: "x",
	leaseUsedActions: "un", leaseUsedValue: "uv", leaseOverActions: "on", leaseOverValue: "ov", leaseSettledAt: "at",
	leaseLate: "lt", renewalID: "ri", renewalActions: "rn", renewalValue: "rv", renewalExpires: "rx", renewalRefusal: "rr",
	leaseChargedOver: "oc",
}

// readLease reads a lease from its leaseFields.
func readLease(id uuid.UUID, r *reply, open bool) (Lease, error) {
	l := Lease{
		ID: id, Agent: r.ID(leaseAgent), Session: r.ID(leaseSession), MaxActions: r.Number(leaseActions),
		MaxValue: kernel.MoneyAt(r, leaseValue), Created: r.Time(leaseCreated), Expires: r.Time(leaseExpires), Status: Expired,
	}
	if open {
		l.Status = LeaseOpen
	}
	if r.Optional(leaseSettledAt) != "" {
		l.Status = LeaseSettled
		l.Settlement = readSettlement(l, r)
	}
	return l, r.Err
}

func readSettlement(l Lease, r *reply) *Settlement {
	s := &Settlement{
		ActionCount: r.Number(leaseUsedActions), ValueUsed: kernel.MoneyAt(r, leaseUsedValue),
		OverageActions: r.NumberOr0(leaseOverActions), Overage: money.MicroUSD(r.NumberOr0(leaseOverValue)),
		ChargedOverage: money.MicroUSD(r.NumberOr0(leaseChargedOver)),
		Late:           r.Optional(leaseLate) != "", Settled: r.Time(leaseSettledAt),
	}
	s.refuse(r, strings.Split(r.Optional(renewalRefusal), " "))
	if r.Optional(renewalID) != "" {
		s.Renewed = &Lease{
			ID: r.ID(renewalID), Agent: l.Agent, Session: l.Session, Status: LeaseOpen, MaxActions: r.Number(renewalActions),
			MaxValue: kernel.MoneyAt(r, renewalValue), Created: s.Settled, Expires: r.Time(renewalExpires),
		}
	}
	return s
}

// refuse reads why a renewal was refused: a code, of a limit also its name and the actions and micro-USD that were wanted.
func (s *Settlement) refuse(r *reply, parts []string) {
	if s.Refusal = parts[0]; len(parts) > 1 {
		s.Limit = parts[1]
	}
	if len(parts) > 3 {
		s.Needed = &Needed{r.Parse(parts[2]), parseMoney(r, parts[3])}
	}
}

// leaseDemand is the demand of a lease that is settled in time. One that expires unsettled is stored longer, and counted
// again by noteExpiredLeases.
func (s *Store) leaseDemand(act kernel.Actor, n NewLease) kernel.Demand {
	d := kernel.Demand{
		Organization: act.Organization, Resource: kernel.NoResource, Events: kernel.EventSize,
		Bytes: kernel.LeaseSize, Retained: n.Lifetime + min(settledLeaseKept, s.config.Retention),
	}
	if act.Family != "" {
		d.Agent = act.Agent
	}
	return d
}

// noteExpiredLeases counts leases that expired unsettled, and their memory.
func (s *Store) noteExpiredLeases(organization uuid.UUID, expired int64) {
	if expired == 0 {
		return
	}
	s.expiredLeases.Add(float64(expired))
	s.core.Usage.NoteEvents(organization, expired)
	s.core.Usage.NoteBytes(organization, expired*kernel.LeaseSize, s.config.Retention)
}

package redisstore

import (
	"strings"

	"github.com/google/uuid"
	"remit/money"
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
		MaxValue: moneyAt(r, leaseValue), Created: r.Time(leaseCreated), Expires: r.Time(leaseExpires), Status: Expired,
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
		ActionCount: r.Number(leaseUsedActions), ValueUsed: moneyAt(r, leaseUsedValue),
		OverageActions: r.NumberOr0(leaseOverActions), Overage: money.MicroUSD(r.NumberOr0(leaseOverValue)),
		ChargedOverage: money.MicroUSD(r.NumberOr0(leaseChargedOver)),
		Late:           r.Optional(leaseLate) != "", Settled: r.Time(leaseSettledAt),
	}
	s.refuse(r, strings.Split(r.Optional(renewalRefusal), " "))
	if r.Optional(renewalID) != "" {
		s.Renewed = &Lease{
			ID: r.ID(renewalID), Agent: l.Agent, Session: l.Session, Status: LeaseOpen, MaxActions: r.Number(renewalActions),
			MaxValue: moneyAt(r, renewalValue), Created: s.Settled, Expires: r.Time(renewalExpires),
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

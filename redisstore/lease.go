package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// LeaseOpen and LeaseSettled are states of a lease, which may also be Expired: then all of it counts as spent, until it is settled.
const (
	LeaseOpen    Status = "open"
	LeaseSettled Status = "settled"
)

// Lease is a part of a session's limits that its holder spends without asking.
type Lease struct {
	ID         uuid.UUID
	Agent      uuid.UUID
	Session    uuid.UUID
	Status     Status // at the time of the read
	MaxActions int64
	MaxValue   money.MicroUSD
	Created    time.Time
	Expires    time.Time
	Settlement *Settlement // nil until it is settled

	WouldRefuse string // in the result of a grant in a session that observes, the limit that would have refused it; else ""
}

// NewLease describes a lease to grant. One of MaxActions and MaxValue is more than 0.
type NewLease struct {
	MaxActions  int64
	MaxValue    money.MicroUSD
	Lifetime    time.Duration
	Partial     bool         // grant of each what fits, if that is more than 0
	Idempotency *Idempotency // nil for no idempotency key; a renewal has none
}

// NewSettlement says what was spent of a lease.
type NewSettlement struct {
	ActionCount int64
	ValueUsed   money.MicroUSD
	Types       []TypeUsage  // what of it has an action type; at most 64
	Renew       *NewLease    // nil for none
	Idempotency *Idempotency // nil for no idempotency key
}

// typeLines returns the action types as settle_lease.lua takes them.
func (n NewSettlement) typeLines() []byte {
	var lines []byte
	for _, t := range n.Types {
		lines = fmt.Appendf(lines, "%d %d %s\n", t.ActionCount, int64(t.Value), storedType(t.ActionType))
	}
	return lines
}

// Settlement is what a lease was settled with.
type Settlement struct {
	ActionCount    int64
	ValueUsed      money.MicroUSD
	OverageActions int64          // the part of ActionCount that the session had no room for
	Overage        money.MicroUSD // the same of ValueUsed, and what exceeds the session's MaxPerAction for each action
	ChargedOverage money.MicroUSD // the part of Overage that the session had room for: only MaxPerAction forbids it
	Late           bool           // the lease had expired before
	Settled        time.Time
	Renewed        *Lease // nil for none
	// Refusal is the code of why no renewal was granted, "" for no reason. Limit is the limit that refused it, "" for none, and
	// Needed what was wanted, nil unless waiting does not help.
	Refusal, Limit string
	Needed         *Needed

	Repeated bool // the lease was settled before, with the same numbers; nothing was changed
}

var (
	grantLease  = kernel.NewKeyedScript("budgets/grant_lease")
	settleLease = kernel.NewKeyedScript("budgets/settle_lease")
	getLease    = kernel.NewScript("budgets/get_lease", reads)
)

// Why a renewal is refused before the script could.
const (
	refusedByQuota = "quota_exceeded"
	refusedByRate  = "rate_limited"
	refusedForNow  = "unavailable"
)

// settledLeaseKept is how long a settled lease stays readable. It is short, because a busy holder settles every second.
const settledLeaseKept = time.Hour

// GrantLease grants a lease of a session: it counts the whole lease in the session at once. Errors: ErrInvalidAPIKey or
// ErrInvalidToken, ErrUnknownSession, *NotActiveError, *LimitError, *QuotaError, *RateError; with an idempotency key
// ErrIdempotencyKeyReused.
func (s *Store) GrantLease(ctx context.Context, c Caller, session uuid.UUID, n NewLease) (_ Lease, err error) {
	defer func() { s.core.FreeClaim(ctx, c, n.Idempotency, err) }()
	n.Idempotency.SetBounded()
	act, err := s.core.ActOnSession(ctx, c, session, n.Idempotency)
	if err != nil {
		return Lease{}, err
	}
	held, err := s.core.ReserveFor(ctx, act, s.leaseDemand(act, n), n.Idempotency)
	if err != nil {
		return Lease{}, err
	}
	id := NewID(act.Agent)
	keys := append(s.leaseKeys(act, session, id), s.keys.Events(act.Agent))
	r, err := s.repeatForRoom(ctx, act, session, n.Idempotency, func() (*reply, error) {
		return s.core.Perform(ctx, grantLease, act, n.Idempotency, keys, act.Organization, act.Agent, act.Family, session, id,
			n.MaxActions, int64(n.MaxValue), n.Lifetime.Milliseconds(), oneIf(n.Partial), s.config.Retention.Milliseconds(),
			s.core.Audit(ctx, act))
	})
	held.Finish(err, n.Idempotency.IsReplay())
	if err != nil {
		return Lease{}, act.ErrorFor(err)
	}
	granted := Lease{
		ID: r.ID(0), Agent: act.Agent, Session: session, Status: LeaseOpen, MaxActions: r.Number(1), MaxValue: kernel.MoneyAt(r, 2),
		Created: r.Time(3), Expires: r.Time(4),
	}
	if r.Has(5) {
		granted.WouldRefuse = r.Text(5)
	}
	return granted, r.Err
}

// SettleLease charges what was spent of a lease and returns the rest to its session, also after the lease has expired or its
// session has ended. Then it grants the renewal, if one is wanted and possible. A lease that was settled with the same
// numbers returns its first settlement. Errors: ErrInvalidAPIKey or ErrInvalidToken, ErrUnknownLease, ErrLeaseSettled; with
// an idempotency key ErrIdempotencyKeyReused.
func (s *Store) SettleLease(ctx context.Context, c Caller, id uuid.UUID, n NewSettlement) (_ Lease, err error) {
	defer func() { s.core.FreeClaim(ctx, c, n.Idempotency, err) }()
	act, session, err := s.actOnLease(ctx, c, id, n.Idempotency)
	if err != nil {
		return Lease{}, err
	}
	renewal := s.renewal(ctx, act, n.Renew)
	r, err := s.settle(ctx, act, session, id, n, renewal)
	if redisclient.RefusedWrite(err) && renewal.held.Usage != nil { // Redis is full: a settlement alone frees memory
		renewal.held.Finish(err, false)
		renewal = wantedRenewal{text: refusedForNow}
		r, err = s.settle(ctx, act, session, id, n, renewal)
	}
	if err != nil {
		renewal.held.Finish(err, false)
		return Lease{}, asUnknownLease(act.ErrorFor(err))
	}
	settled, err := readLease(id, r.List(1), false)
	if r.Err != nil || err != nil || settled.Settlement == nil {
		return Lease{}, cmp.Or(r.Err, err, errReply)
	}
	settled.Settlement.Repeated = r.Text(0) != "" || n.Idempotency.IsReplay()
	renewal.held.Finish(nil, settled.Settlement.Repeated || settled.Settlement.Renewed == nil)
	if !settled.Settlement.Repeated {
		s.core.Usage.NoteEvent(act.Organization)
		s.noteTypes(act.Organization, r.Number(2), 0)
	}
	return settled, nil
}

func (s *Store) settle(ctx context.Context, act kernel.Actor, session, id uuid.UUID, n NewSettlement, renewal wantedRenewal) (*reply, error) {
	next := cmp.Or(renewal.lease, s.keys.Lease(act.Agent, id))
	keys := append(s.leaseKeys(act, session, id), next, s.keys.Events(act.Agent))
	return s.repeatWhileDue(ctx, act, session, func() (*reply, error) {
		return s.core.Perform(ctx, settleLease, act, n.Idempotency, keys, act.Organization, act.Agent, act.Family, id,
			n.ActionCount, int64(n.ValueUsed), renewal.id, renewal.text, s.config.Retention.Milliseconds(),
			min(settledLeaseKept, s.config.Retention).Milliseconds(), s.core.Audit(ctx, act), n.typeLines())
	})
}

// wantedRenewal is a renewal as settle_lease.lua takes it.
type wantedRenewal struct {
	id    string // its 16 bytes, "" for none
	lease string // its key, "" for none
	text  string // what is wanted, or why it is refused; "" for none
	held  kernel.Reservation
}

// renewal reserves a renewal, or says in it why it is refused. Quotas and rates count it as they count a grant: each leaves
// a lease in Redis for an hour.
func (s *Store) renewal(ctx context.Context, act kernel.Actor, wanted *NewLease) wantedRenewal {
	if wanted == nil {
		return wantedRenewal{}
	}
	held, err := s.core.ReserveIn(act.Flow, s.leaseDemand(act, *wanted))
	if err != nil {
		return wantedRenewal{text: refusalOf(s.core.Refusals.Count(err))}
	}
	id := NewID(act.Agent)
	partial := cmp.Or(oneIf(wanted.Partial), "0")
	return wantedRenewal{
		id: string(id[:]), lease: s.keys.Lease(act.Agent, id), held: held,
		text: fmt.Sprintf("%d %d %d %s", wanted.MaxActions, int64(wanted.MaxValue), wanted.Lifetime.Milliseconds(), partial),
	}
}

func refusalOf(err error) string {
	var rate *RateError
	if errors.As(err, &rate) {
		return refusedByRate
	}
	return refusedByQuota
}

// Lease returns a lease that the caller may see. Errors: ErrInvalidAPIKey or ErrInvalidToken, ErrUnknownLease.
func (s *Store) Lease(ctx context.Context, c Caller, id uuid.UUID) (Lease, error) {
	act, session, err := s.actOnLease(ctx, c, id, nil)
	if err != nil {
		return Lease{}, err
	}
	r, err := s.client.Run(ctx, act.Flow, getLease, s.leaseKeys(act, session, id), act.Organization, act.Agent, act.Family, id)
	if err != nil {
		return Lease{}, asUnknownLease(act.ErrorFor(err))
	}
	l, err := readLease(id, r.List(1), r.Text(0) != "")
	return l, cmp.Or(r.Err, err)
}

// actOnLease returns the actor for an operation on the lease, and its session. The operation's script checks that the actor
// may see it.
func (s *Store) actOnLease(ctx context.Context, c Caller, id uuid.UUID, idem *Idempotency) (kernel.Actor, uuid.UUID, error) {
	act, err := s.actByCell(ctx, c, id, idem)
	if err != nil {
		return kernel.Actor{}, uuid.Nil, err
	}
	r, err := s.client.Fields(ctx, act.Flow, s.keys.Lease(act.Agent, id), leaseFields[:leaseSession+1]...)
	if err == nil && c.Token.IsSessionKey() { // as in actOnTransaction
		of, _ := uuid.FromBytes([]byte(r.Optional(leaseSession)))
		err = s.heldTo(ctx, c.Token, of, ErrUnknownLease)
	}
	switch {
	case err != nil:
		return kernel.Actor{}, uuid.Nil, err
	case r.Values[leaseAgent] == nil && c.Token != nil: // the script says so, after it has checked the token
		return act, uuid.Nil, nil
	case r.Values[leaseAgent] == nil:
		return kernel.Actor{}, uuid.Nil, ErrUnknownLease
	}
	if c.Key != nil {
		act.Agent = r.ID(leaseAgent)
	}
	return act, r.ID(leaseSession), r.Err
}

// asUnknownLease turns the refusal of an unknown agent into one of the lease.
func asUnknownLease(err error) error {
	if errors.Is(err, ErrUnknownSession) {
		return ErrUnknownLease
	}
	return err
}

// leaseKeys are the keys of a script that reads a lease, and the first of one that changes it.
func (s *Store) leaseKeys(act kernel.Actor, session, id uuid.UUID) []string {
	return []string{s.keys.Agent(act.Agent), s.keys.Session(act.Agent, session), s.keys.Leases(act.Agent, session),
		s.keys.Lease(act.Agent, id)}
}

func oneIf(set bool) string {
	if set {
		return "1"
	}
	return ""
}

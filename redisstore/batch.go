package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// BatchCharge is one charge of a batch. Its Idempotency is ignored: the batch has one idempotency key for all.
type BatchCharge struct {
	Session uuid.UUID
	Charge
}

// ChargeOutcome is the outcome of one charge of a batch: what Charge would have returned.
type ChargeOutcome struct {
	Usage Usage
	Err   error
}

var chargeBatch = kernel.NewKeyedScript("budgets/charge_batch").RecordingIf(batchMayRecord)

// ChargeBatch makes each charge as Charge would, those of one session in the order given. A refused charge does not stop
// the others. It runs one script per session, in one pipeline per server. Errors of the whole batch, with nothing charged:
// ErrInvalidAPIKey, ErrInvalidToken, *AgentSuspendedError, ErrIdempotencyKeyReused.
func (s *Store) ChargeBatch(ctx context.Context, c Caller, charges []BatchCharge, idem *Idempotency) ([]ChargeOutcome, error) {
	idem.SetBounded()
	parts, err := s.partsOf(ctx, c, charges, idem)
	if err != nil {
		return nil, err
	}
	s.runParts(ctx, parts)
	outcomes := make([]ChargeOutcome, len(charges))
	for _, p := range parts {
		p.spread(outcomes)
	}
	s.settleRefused(ctx, parts, outcomes)
	if err := refusalOfAll(c, parts); err != nil {
		return nil, err
	}
	s.notePartTypes(parts)
	if idem != nil {
		// Equal batches that run at once may each do a part, so all name the request that claimed the key first.
		idem.Outcome.FirstRequest, idem.Outcome.Replayed = idem.Outcome.Claim.Request, allReplayed(parts, idem.Outcome.Claim.Before)
		s.noteParts(parts)
	}
	return outcomes, nil
}

// settleRefused settles the children of sessions that refused a charge, so that the next request finds the room. The response waits for
// all of them together no longer than for one.
func (s *Store) settleRefused(ctx context.Context, parts []*batchPart, outcomes []ChargeOutcome) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for _, p := range parts {
		if slices.ContainsFunc(p.places, func(i int) bool { return mayGiveBack(outcomes[i].Err) }) {
			s.settleBelow(ctx, p.act.Organization, place{p.session, p.act.Agent})
		}
	}
}

// refusalOfAll returns why the caller's agent may charge nothing at all, nil when it may, or could for a part.
func refusalOfAll(c Caller, parts []*batchPart) error {
	if c.Token == nil || len(parts) == 0 {
		return nil
	}
	for _, p := range parts {
		var suspended *AgentSuspendedError
		if p.Err != ErrInvalidToken && !errors.As(p.Err, &suspended) {
			return nil
		}
	}
	return parts[0].Err
}

// allReplayed says whether every outcome of the parts is a replay. A part whose session does not exist has no outcome. If
// no part has one, the claim decides: whether an earlier request made it.
func allReplayed(parts []*batchPart, claimedBefore bool) bool {
	for _, p := range parts {
		if p.Err == ErrUnknownSession {
			continue
		}
		if !p.idem.IsReplay() {
			return false
		}
		claimedBefore = true
	}
	return claimedBefore
}

// batchPart is the charges of a batch that concern one session, and the call that makes them.
type batchPart struct {
	redisclient.BatchCall
	session uuid.UUID
	act     kernel.Actor
	places  []int // of its charges, in the batch
	charges []byte
	idem    *Idempotency // a copy, which says whether this part was replayed; nil for none
}

// partsOf authorizes the caller and splits the batch by session, in the order of their first charge.
func (s *Store) partsOf(ctx context.Context, c Caller, charges []BatchCharge, idem *Idempotency) ([]*batchPart, error) {
	act, err := s.authorizeBatch(ctx, c, len(charges), idem)
	if err != nil {
		return nil, err
	}
	var parts []*batchPart
	bySession := map[uuid.UUID]*batchPart{}
	for i, charge := range charges {
		p := bySession[charge.Session]
		if p == nil {
			p = &batchPart{session: charge.Session, act: act}
			if idem != nil {
				own := *idem
				p.idem = &own
			}
			bySession[charge.Session] = p
			parts = append(parts, p)
		}
		p.places = append(p.places, i)
		p.charges = fmt.Appendf(p.charges, "%d %d %s\n", charge.Count, int64(charge.Value), charge.withType())
	}
	if c.Key != nil {
		return parts, s.findAgents(ctx, parts)
	}
	return parts, nil
}

// authorizeBatch is ActOnAgent for a batch. It ties the idempotency key to the whole batch before the split.
func (s *Store) authorizeBatch(ctx context.Context, c Caller, charges int, idem *Idempotency) (kernel.Actor, error) {
	if c.Key != nil {
		return s.core.ActOnAgent(ctx, c, uuid.Nil, idem)
	}
	act, err := s.core.ActOnAgent(ctx, c, c.Token.Agent, idem)
	if err != nil || idem == nil && charges > 0 {
		return act, err
	}
	if idem == nil { // no script will check the token
		return act, s.CheckToken(ctx, *c.Token)
	}
	place := s.keys.Outcome(act.Agent, act.KeyDigest(idem, ""))
	held, err := s.core.ReserveClaim(ctx, act, idem, place)
	if err != nil {
		return act, err
	}
	keys := []string{s.keys.Agent(act.Agent), s.keys.Session(act.Agent, c.Token.Session), place}
	err = idem.Claimed(s.client.Run(ctx, act.Flow, kernel.ClaimAgentKey, keys,
		act.Organization, act.Family, idem.Fingerprint, kernel.OutcomeLifetime.Milliseconds(), kernel.RequestID(ctx)))
	held.Finish(err, idem.Outcome.Claim.Before)
	return act, err
}

// findAgents sets the agent of each part's session, for an API key.
func (s *Store) findAgents(ctx context.Context, parts []*batchPart) error {
	if len(parts) == 0 {
		return nil
	}
	sessions := kernel.Map(parts, func(p *batchPart) string { return s.keys.Session(p.session, p.session) })
	owners, err := s.client.ReadAll(ctx, parts[0].act.Flow, sessions, "a")
	if err != nil {
		return err
	}
	for i, p := range parts {
		if owners[i].Optional(0) == "" {
			p.Err = ErrUnknownSession
			continue
		}
		p.act.Agent = owners[i].ID(0)
		if owners[i].Err != nil {
			return owners[i].Err
		}
	}
	return nil
}

// runParts runs each part's script, those of one server in one pipeline. A part that did not run there runs by itself.
func (s *Store) runParts(ctx context.Context, parts []*batchPart) {
	running := make([]*batchPart, 0, len(parts))
	calls := make([]*redisclient.BatchCall, 0, len(parts))
	for _, p := range parts {
		if p.Err == nil {
			s.chargePart(ctx, p)
			running, calls = append(running, p), append(calls, &p.BatchCall)
		}
	}
	read := func(i int) { running[i].read() }
	again := func(ctx context.Context, i int) { s.runPart(ctx, running[i]) }
	s.client.RunAll(ctx, calls, read, again)
}

// read reads the part's result from its pipeline.
func (p *batchPart) read() {
	if p.Again {
		return
	}
	unconfirmed := p.Err
	if p.Reply == nil {
		p.Err = p.act.ErrorFor(p.Err)
	} else if p.take(p.Reply, nil); unconfirmed != nil && !kernel.IsDue(p.Err) && (p.Err == nil || p.idem != nil) {
		p.Err = unconfirmed // a refusal acknowledges nothing, unless it is stored for an idempotency key
	}
	p.Again = kernel.IsDue(p.Err)
}

// runPart runs a part by itself.
func (s *Store) runPart(ctx context.Context, p *batchPart) {
	p.Reply, p.Err = s.repeatWhileDue(ctx, p.act, p.session, func() (*reply, error) {
		s.chargePart(ctx, p)
		p.take(s.client.RunCommand(ctx, p.Script, p.Command))
		return p.Reply, p.Err
	})
}

// chargePart makes the call of a part.
func (s *Store) chargePart(ctx context.Context, p *batchPart) {
	keys := s.sessionKeys(p.act, p.session)
	c := redisclient.NewCommand(p.act.Flow, 1+len(keys))
	if p.Script = chargeBatch.Script; p.idem == nil {
		c = redisclient.NewCommand(p.act.Flow, len(keys))
	} else {
		p.Script = chargeBatch.Keyed
		c.Keys(s.keys.Outcome(p.act.Agent, p.act.KeyDigest(p.idem, string(p.session[:]))))
	}
	c.Keys(keys[:]...)
	if p.idem != nil {
		c.Arguments(kernel.KeyedArguments(ctx, p.act, p.idem)...)
	}
	c.Arguments(p.act.Organization, p.act.Agent, p.act.Family, p.charges, s.core.Audit(ctx, p.act))
	p.Command = c
}

// take sets the part's result from the reply of its script.
func (p *batchPart) take(r *reply, err error) {
	if err == nil && p.idem != nil {
		r, err = p.idem.Read(r)
	}
	if err == nil && len(r.List(0).Values) != len(p.places) {
		err = errReply
	}
	p.Reply, p.Err = r, err
	if err != nil {
		p.Err = p.act.ErrorFor(err)
	}
}

// spread writes the outcomes of a part's charges to their places in the batch.
func (p *batchPart) spread(outcomes []ChargeOutcome) {
	var each *reply
	if p.Err == nil {
		each = p.Reply.List(0)
	}
	for i, place := range p.places {
		outcomes[place] = p.outcome(each, i)
	}
}

// outcome reads the outcome of the part's charge i.
func (p *batchPart) outcome(each *reply, i int) ChargeOutcome {
	if p.Err != nil {
		return ChargeOutcome{Err: p.Err}
	}
	own := each.List(i)
	if own.Err != nil {
		return ChargeOutcome{Err: own.Err}
	}
	r, err := own.Whole()
	if err != nil {
		return ChargeOutcome{Err: err}
	}
	usage := usageAt(r, 0)
	return ChargeOutcome{usage, r.Err}
}

// noteParts counts the outcomes that the parts of a batch stored for its idempotency key.
func (s *Store) noteParts(parts []*batchPart) {
	var kept int64
	for _, p := range parts {
		if p.Err == nil && !p.idem.IsReplay() {
			kept++
		}
	}
	if kept > 0 {
		s.core.NoteOutcomes(parts[0].act.Organization, kept)
	}
}

// notePartTypes counts the memory of action types that are new in the sessions of a batch.
func (s *Store) notePartTypes(parts []*batchPart) {
	for _, p := range parts {
		if p.Err == nil && p.Reply.Has(1) && !p.idem.IsReplay() {
			s.noteTypes(p.act.Organization, p.Reply.Number(1), 0)
		}
	}
}

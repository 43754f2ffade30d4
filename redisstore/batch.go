package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// BatchCharge is one charge of a batch. Its Idempotency is not looked at: a batch has one for all.
type BatchCharge struct {
	Session uuid.UUID
	Charge
}

// ChargeOutcome is what came of one charge of a batch: what Charge would have returned.
type ChargeOutcome struct {
	Usage Usage
	Err   error
}

var chargeBatch = newKeyedScript("charge_batch")

// ChargeBatch charges sessions many times, those of one session in the order given, each as Charge would; what is refused
// does not hinder the rest. It runs one script for each session, in one pipeline for each server. Errors of the batch as
// a whole: ErrInvalidAPIKey, ErrInvalidToken, ErrKeyReused; nothing was charged then.
func (s *Store) ChargeBatch(ctx context.Context, c Caller, charges []BatchCharge, once *Idempotency) ([]ChargeOutcome, error) {
	if once != nil {
		once.bounded = true
	}
	parts, err := s.partsOf(ctx, c, charges, once)
	if err != nil {
		return nil, err
	}
	s.runParts(ctx, parts)
	outcomes := make([]ChargeOutcome, len(charges))
	refused := len(parts) > 0
	for _, p := range parts {
		p.spread(outcomes)
		refused = refused && p.err == ErrInvalidToken
	}
	if refused {
		return nil, ErrInvalidToken
	}
	if once != nil {
		// Of equal batches at once each may do a part, so all are answered as the one that had the key first.
		once.FirstRequest, once.Replayed = once.claim.request, replayed(parts, once.claim.before)
		s.noteParts(parts)
	}
	return outcomes, nil
}

// replayed says whether all that came of the parts had come of them before. A part whose session does not exist has no
// outcome; when none has, it goes by whether the key was claimed before.
func replayed(parts []*part, claimedBefore bool) bool {
	for _, p := range parts {
		if p.err == ErrUnknownSession {
			continue
		}
		if !p.once.Replayed {
			return false
		}
		claimedBefore = true
	}
	return claimedBefore
}

// part is what of a batch concerns one session.
type part struct {
	session uuid.UUID
	act     actor
	places  []int // of its charges in the batch
	charges []byte
	once    *Idempotency // of its own, to hear whether it was replayed; nil for none
	reply   *reply
	err     error
}

// partsOf lets the caller in and takes the batch apart by sessions, in the order of their first charge.
func (s *Store) partsOf(ctx context.Context, c Caller, charges []BatchCharge, once *Idempotency) ([]*part, error) {
	act, err := s.admitBatch(ctx, c, len(charges), once)
	if err != nil {
		return nil, err
	}
	var parts []*part
	bySession := map[uuid.UUID]*part{}
	for i, charge := range charges {
		p := bySession[charge.Session]
		if p == nil {
			p = &part{session: charge.Session, act: act}
			if once != nil {
				own := *once
				p.once = &own
			}
			bySession[charge.Session] = p
			parts = append(parts, p)
		}
		p.places = append(p.places, i)
		p.charges = fmt.Appendf(p.charges, "%d %d %s\n", charge.Count, int64(charge.Value), charge.Scope)
	}
	if c.Key != nil {
		return parts, s.findAgents(ctx, parts)
	}
	return parts, nil
}

// admitBatch is actOnAgent for a batch, whose idempotency key is tied to it before it is taken apart.
func (s *Store) admitBatch(ctx context.Context, c Caller, charges int, once *Idempotency) (actor, error) {
	if c.Key != nil {
		return s.actOnAgent(ctx, c, uuid.Nil, once)
	}
	act, err := s.actOnAgent(ctx, c, c.Token.Agent, once)
	if err != nil || once == nil && charges > 0 {
		return act, err
	}
	if once == nil { // no script will check the token
		return act, s.CheckToken(ctx, *c.Token)
	}
	place := s.keys.outcome(act.agent, act.keyDigest(once, ""))
	held, err := s.reserveClaim(ctx, act, once, place)
	if err != nil {
		return act, err
	}
	err = once.claimed(s.run(ctx, act.flow, claimAgentKey, []string{s.keys.agent(act.agent), place},
		act.organization, act.family, once.Fingerprint, onceLifetime.Milliseconds(), requestID(ctx)))
	held.settle(err, once.claim.before)
	return act, err
}

// findAgents finds whose sessions they are, for an API key.
func (s *Store) findAgents(ctx context.Context, parts []*part) error {
	if len(parts) == 0 {
		return nil
	}
	sessions := make([]uuid.UUID, len(parts))
	for i, p := range parts {
		sessions[i] = p.session
	}
	owners, err := s.readAll(ctx, parts[0].act.flow, sessions, func(p redis.Pipeliner, session uuid.UUID) {
		p.HMGet(ctx, s.keys.session(session, session), "a")
	})
	if err != nil {
		return err
	}
	for i, p := range parts {
		if owners[i].optional(0) == "" {
			p.err = ErrUnknownSession
			continue
		}
		p.act.agent = owners[i].id(0)
		if owners[i].err != nil {
			return owners[i].err
		}
	}
	return nil
}

// runParts runs each part's script, those of one server in one pipeline, which is sent once. What it shows not to have
// run is run by itself.
func (s *Store) runParts(ctx context.Context, parts []*part) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	byServer, began := map[*redis.Client][]*part{}, time.Now()
	var nowhere error
	for _, p := range parts {
		if p.err != nil {
			continue
		}
		server, err := s.serverOf(ctx, s.keys.session(p.act.agent, p.session))
		if err != nil {
			p.err = fmt.Errorf("%w: %w", ErrUnavailable, err)
			nowhere = p.err
			continue
		}
		byServer[server] = append(byServer[server], p)
	}
	if nowhere != nil { // those that have no server are counted like a pipeline
		s.counts.called(chargeBatch.counted, began, nowhere)
	}
	var group sync.WaitGroup
	for server, own := range byServer {
		group.Go(func() {
			defer recoverTo(func(err error) { failAll(own, err) })
			s.runPipeline(ctx, server, own)
		})
	}
	group.Wait()
}

func failAll(parts []*part, err error) {
	for _, p := range parts {
		p.err = err
	}
}

// serverOf returns the server that has the key.
func (s *Store) serverOf(ctx context.Context, key string) (*redis.Client, error) {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return s.client.(*redis.Client), nil
}

// runPipeline is counted as one call, which ended as the worst of its parts did. What is run by itself after it is counted
// by itself; of a pipeline of which nothing else is left there was none.
func (s *Store) runPipeline(ctx context.Context, server *redis.Client, parts []*part) {
	inPipeline, seen := s.observe(ctx, chargeBatch.operation, time.Now())
	seen.counted = chargeBatch.counted
	places := &s.lanes.of(server).batches
	if err := places.enter(ctx, parts[0].act.flow); err != nil {
		failAll(parts, err)
		seen.end(err)
		return
	}
	calls, commands, unconfirmed := s.sendParts(inPipeline, server, parts, places)
	var alone []*part
	var worst error
	for i, p := range parts {
		commands[i].note(unconfirmed)
		if s.settle(p, calls[i], commands[i]) {
			worst = worse(worst, p.err)
		} else {
			alone = append(alone, p)
		}
	}
	if len(alone) < len(parts) {
		seen.end(worst)
	}
	for _, p := range alone {
		s.runPart(ctx, p)
	}
}

// settle notes what came of a part in its pipeline, or returns false when the part is to be run by itself.
func (s *Store) settle(p *part, call *command, cmd onceCmd) bool {
	values, err := cmd.answer()
	switch {
	case err == nil, errors.Is(err, errUnconfirmed):
		switch p.take(readReply(values)); p.err {
		case errHoldsDue:
			return false
		case nil:
			p.err = classify(err, writes)
		default: // a refusal acknowledges nothing, unless it is kept for a key
			if p.once != nil && err != nil {
				p.err = classify(err, writes)
			}
		}
	case sentElsewhere(err):
		return false
	default:
		s.suspect(err)
		p.err = call.classify(err, writes)
	}
	return true
}

// sendParts sends the parts in one pipeline, and leaves its place among the batches when they are answered.
func (s *Store) sendParts(ctx context.Context, server *redis.Client, parts []*part, places *bulk) ([]*command, []onceCmd, error) {
	defer places.leave()
	pipeline := server.Pipeline()
	calls, commands := make([]*command, len(parts)), make([]onceCmd, len(parts))
	for i, p := range parts {
		sc, c := s.chargePart(ctx, p)
		calls[i], commands[i] = c, c.of(ctx, sc, false)
		_ = pipeline.Process(ctx, commands[i])
	}
	deadline, _ := ctx.Deadline()
	failure := s.confirmerOf(server).end(pipeline, keyOf(commands[0]), deadline)
	s.counts.ofBatch.Observe(float64(len(parts)))
	_, failed := pipeline.Exec(ctx)
	unconfirmed := failure()
	for _, c := range commands {
		c.explain(failed)
	}
	return calls, commands, unconfirmed
}

// runPart runs a part by itself.
func (s *Store) runPart(ctx context.Context, p *part) {
	p.reply, p.err = s.look(ctx, p.act, p.session, func() (*reply, error) {
		sc, c := s.chargePart(ctx, p)
		p.take(s.runCommand(ctx, sc, c))
		return p.reply, p.err
	})
}

// sentElsewhere says that the script did not run because this server does not know it, or is not the one that has the keys.
func sentElsewhere(err error) bool {
	return redis.HasErrorPrefix(err, "NOSCRIPT") || moving(err)
}

// chargePart returns the script of a part, and its call.
func (s *Store) chargePart(ctx context.Context, p *part) (*script, *command) {
	sc, keys := chargeBatch, s.sessionKeys(p.act, p.session)
	c := newCommand(p.act.flow, len(keys))
	if p.once != nil {
		sc, c = chargeBatch.keyed, newCommand(p.act.flow, 1+len(keys))
		c.keys(s.keys.outcome(p.act.agent, p.act.keyDigest(p.once, string(p.session[:]))))
	}
	c.keys(keys[:]...)
	if p.once != nil {
		c.arguments(onceArguments(ctx, p.act, p.once)...)
	}
	c.arguments(p.act.organization, p.act.agent, p.act.family, p.charges, s.audit(ctx, p.act))
	return sc, c
}

// take notes what the part's script has answered.
func (p *part) take(r *reply, err error) {
	if err == nil && p.once != nil {
		r, err = p.once.read(r)
	}
	if err == nil && len(r.list(0).values) != len(p.places) {
		err = errReply
	}
	p.reply, p.err = r, err
	if err != nil {
		p.err = p.act.refusedTo(err)
	}
}

// spread puts what came of a part's charges into their places of the batch.
func (p *part) spread(outcomes []ChargeOutcome) {
	var each *reply
	if p.err == nil {
		each = p.reply.list(0)
	}
	for i, place := range p.places {
		outcomes[place] = p.outcome(each, i)
	}
}

// outcome reads what came of the part's charge i.
func (p *part) outcome(each *reply, i int) ChargeOutcome {
	if p.err != nil {
		return ChargeOutcome{Err: p.err}
	}
	own := each.list(i)
	if own.err != nil {
		return ChargeOutcome{Err: own.err}
	}
	r, err := readReply(own.values)
	if err != nil {
		return ChargeOutcome{Err: err}
	}
	usage := r.usage(0)
	return ChargeOutcome{usage, r.err}
}

package redisstore

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// Proof is a DPoP proof (RFC 9449) that is valid as far as its text says. Redis says whether it was used before.
type Proof struct {
	Key         [32]byte // SHA-256 thumbprint of the key (RFC 7638)
	Fingerprint [32]byte // of the key and the jti
}

// keptFingerprint is how many bytes of a fingerprint are kept.
const keptFingerprint = 14

// key returns the thumbprint as scripts take it, "" without a proof.
func (p *Proof) key() string {
	if p == nil {
		return ""
	}
	return string(p.Key[:])
}

// Thumbprint returns cnf.jkt of a token that is bound to the key, "" without a proof.
func (p *Proof) Thumbprint() string {
	return thumbprintOf(p.key())
}

// thumbprintOf returns cnf.jkt for a key as scripts have it.
func thumbprintOf(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

var (
	verifyProof = kernel.NewProvenScript("kernel/check_token")
	useProof    = kernel.NewProvenScript("kernel/check_live")
)

// UseProof is CheckLive for a token that is bound to a key, with a proof of that key, which it uses up. The operation that
// follows checks the token again. Errors: ErrInvalidToken, ErrProofUsed, ErrManyProofs. No error leaves in doubt whether
// anything but the proof was used.
func (s *Store) UseProof(ctx context.Context, t AccessToken, p Proof) error {
	_, err := s.proveToken(ctx, useProof, t, p)
	return err
}

func (s *Store) proveToken(ctx context.Context, sc *script, t AccessToken, p Proof) (*reply, error) {
	act := t.Actor()
	r, err := s.runProven(ctx, act.Flow, sc, act.Agent, p, []string{s.core.AgentKey(act)}, t.Organization, act.Family)
	if err == nil || errors.Is(err, ErrOutcomeUnknown) {
		s.noteProof(t.Organization, &p)
	}
	if errors.Is(err, ErrOutcomeUnknown) {
		return nil, fmt.Errorf("%w: %s", ErrUnavailable, err) // all that may have happened is that the proof is used
	}
	if err != nil {
		return nil, act.ErrorFor(err)
	}
	return r, nil
}

// proofPeriod is how long an agent's proofs are kept in one hash, see with_proof.lua.
const proofPeriod = 2 * time.Minute

// noteProof counts a proof that was used, if there is one. No quota refuses it: an organization at its quota may still commit,
// settle and revoke, and an agent has 100,000 proofs at most. Its bucket ends with the next period, when its hash does.
func (s *Store) noteProof(organization uuid.UUID, p *Proof) {
	if p == nil {
		return
	}
	s.core.Usage.Note(organization, func(c *kernel.Changes, unsent *kernel.Quantities) {
		c.Expire(kernel.Expiry{Class: 'b', Width: int64(proofPeriod / time.Minute), Remaining: proofPeriod}, kernel.ProofSize)
		unsent[kernel.BytesHeld] += kernel.ProofSize
	})
}

// runProven runs a script of NewProvenScript, in the agent's cell.
func (s *Store) runProven(ctx context.Context, f flow, sc *script, agent uuid.UUID, p Proof, keys []string, args ...any) (*reply, error) {
	c := redisclient.NewCommand(f, 2+len(keys))
	c.Keys(s.keys.Proofs(agent, 0), s.keys.Proofs(agent, 1))
	c.Keys(keys...)
	c.Arguments(p.Fingerprint[:keptFingerprint])
	c.Arguments(args...)
	r, err := s.client.RunCommand(ctx, sc, c)
	if err != nil {
		return nil, err
	}
	return r.Whole()
}

// grant runs a script that issues tokens: with the proof that the request came with, or without one.
func (s *Store) grant(ctx context.Context, sc kernel.GrantScript, agent uuid.UUID, p *Proof, keys []string, args ...any) (*reply, error) {
	if p == nil {
		return s.client.Run(ctx, flow{}, sc.Script, keys, args...)
	}
	return s.runProven(ctx, flow{}, sc.Proven, agent, *p, keys, args...)
}

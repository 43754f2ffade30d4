package kernel

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

// ErrSealed refuses a replay whose stored credential the caller cannot open: only the credential that made the first request
// opens it.
var ErrSealed = errors.New("the answer under this idempotency key holds a credential; only the credential that first asked opens it")

// Unsealed is the Seal of an operation whose answer has no secret: it keeps what stands in place of a credential as it is.
type Unsealed struct{}

// Seal implements Seal.
func (Unsealed) Seal(text string) string { return text }

// Open implements Seal.
func (Unsealed) Open(text string) (string, bool) { return text, true }

// PerformSealed runs an operation that issues a credential, with an idempotency key unless idem is nil. place is the Redis
// key of the outcome, which belongs to the organization.
func (s *Core) PerformSealed(ctx context.Context, sc KeyedScript, f redisclient.Flow, idem *Idempotency, place string, organization uuid.UUID,
	keys []string, args ...any) (*redisclient.Reply, error) {
	if idem == nil {
		return s.Client.Run(ctx, f, sc.Script, keys, args...)
	}
	c := redisclient.NewCommand(f, 1+len(keys))
	c.Keys(place)
	c.Keys(keys...)
	c.Arguments(idem.Fingerprint, RequestID(ctx), OutcomeLifetime.Milliseconds(), idem.Seal.Seal(idem.Credential), organization)
	c.Arguments(args...)
	r, err := s.Client.RunCommand(ctx, sc.Keyed, c)
	if err != nil {
		return nil, err
	}
	inner, err := idem.open(r)
	if err == nil && !idem.IsReplay() {
		s.NoteOutcomes(organization, 1)
	}
	return inner, err
}

// open reads the reply of idempotent_sealed.lua: the outcome and its credential.
func (o *Idempotency) open(r *redisclient.Reply) (*redisclient.Reply, error) {
	sealed := r
	inner, err := o.Read(r)
	if err != nil || !o.IsReplay() {
		return inner, err
	}
	first, opens := o.Seal.Open(sealed.Text(3))
	if !opens {
		o.Outcome.Replayed, o.Outcome.FirstRequest = false, ""
		return nil, ErrSealed
	}
	o.Credential = first
	return inner, nil
}

// Cell returns the cell of the owner's idempotency key: always the same for one key, and evenly distributed over keys.
func (o *Idempotency) Cell(owner string) uint16 {
	return binary.BigEndian.Uint16(hashOf("cell", owner, o.Key))
}

// FirstMetadata returns the metadata that the first request stored. A repeated request may have its members in another order.
func (s *Core) FirstMetadata(ctx context.Context, f redisclient.Flow, key, field, repeated string) (string, error) {
	if repeated == "" {
		return "", nil
	}
	first, err := s.Client.Call(ctx, f, redisclient.Reads, "hget", key, field)
	if err != nil || first == nil { // nil: the object has expired
		return repeated, err
	}
	r := &redisclient.Reply{Values: []any{first}}
	return r.Text(0), r.Err
}

// RunSealedByKey runs a script that checks an API key, whose answer has a credential, and that counts so many bytes more.
func (s *Core) RunSealedByKey(ctx context.Context, key APIKey, sc KeyedScript, idem *Idempotency, counted int64, keys []string, args ...any) (*redisclient.Reply, error) {
	f := s.Proven.Flow(key)
	if err := s.RefuseSuspended(ctx, key, f); err != nil {
		return nil, err
	}
	if idem == nil {
		return s.RunCounted(ctx, key, f, sc.Script, counted, keys, args...)
	}
	if _, err := s.Authenticate(ctx, f, key); err != nil { // a repetition runs no script that checks the key
		return nil, err
	}
	place, held, err := s.ReserveSealed(ctx, key, f, idem, counted)
	if err != nil {
		return nil, err
	}
	r, err := s.PerformSealed(ctx, sc, f, idem, place, key.Organization, keys, args...)
	held.Finish(err, idem.IsReplay())
	s.Proven.Note(key, err)
	return r, err
}

// RunCounted is RunByKey for a script that counts so many bytes more. Errors: also *QuotaError.
func (s *Core) RunCounted(ctx context.Context, key APIKey, f redisclient.Flow, sc *redisclient.Script, counted int64, keys []string, args ...any) (*redisclient.Reply, error) {
	held, err := s.reserveCounted(f, key.Organization, counted)
	if err != nil {
		return nil, err
	}
	r, err := s.RunByKey(ctx, key, f, sc, keys, args...)
	held.Finish(err, false)
	return r, err
}

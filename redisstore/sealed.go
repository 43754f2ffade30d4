package redisstore

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

// performSealed runs an operation that issues a credential, with an idempotency key unless idem is nil. place is the Redis
// key of the outcome, which belongs to the organization.
func (s *Store) performSealed(ctx context.Context, sc keyedScript, f flow, idem *Idempotency, place string, organization uuid.UUID,
	keys []string, args ...any) (*reply, error) {
	if idem == nil {
		return s.client.Run(ctx, f, sc.script, keys, args...)
	}
	c := redisclient.NewCommand(f, 1+len(keys))
	c.Keys(place)
	c.Keys(keys...)
	c.Arguments(idem.Fingerprint, requestID(ctx), outcomeLifetime.Milliseconds(), idem.Seal.Seal(idem.Credential), organization)
	c.Arguments(args...)
	r, err := s.client.RunCommand(ctx, sc.keyed, c)
	if err != nil {
		return nil, err
	}
	inner, err := idem.open(r)
	if err == nil && !idem.Replayed {
		s.noteOutcomes(organization, 1)
	}
	return inner, err
}

// open reads the reply of idempotent_sealed.lua: the outcome and its credential.
func (o *Idempotency) open(r *reply) (*reply, error) {
	sealed := r
	inner, err := o.read(r)
	if err != nil || !o.Replayed {
		return inner, err
	}
	first, opens := o.Seal.Open(sealed.Text(3))
	if !opens {
		o.Replayed, o.FirstRequest = false, ""
		return nil, ErrSealed
	}
	o.Credential = first
	return inner, nil
}

// cell returns the cell of the owner's idempotency key: always the same for one key, and evenly distributed over keys.
func (o *Idempotency) cell(owner string) uint16 {
	return binary.BigEndian.Uint16(hashOf("cell", owner, o.Key))
}

// firstMetadata returns the metadata that the first request stored. A repeated request may have its members in another order.
func (s *Store) firstMetadata(ctx context.Context, f flow, key, field, repeated string) (string, error) {
	if repeated == "" {
		return "", nil
	}
	first, err := s.client.Call(ctx, f, reads, "hget", key, field)
	if err != nil || first == nil { // nil: the object has expired
		return repeated, err
	}
	r := &reply{Values: []any{first}}
	return r.Text(0), r.Err
}

package redisstore

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/google/uuid"
	"remit/redisclient"
)

// ErrSealed refuses to repeat an answer whose credential only the first request's own credential opens.
var ErrSealed = errors.New("the answer under this idempotency key holds a credential; only the credential that first asked opens it")

// performSealed runs an operation that gives a credential, once if once is not nil. place is where the outcome is kept; it is
// of the organization's.
func (s *Store) performSealed(ctx context.Context, sc keyedScript, f flow, once *Idempotency, place string, organization uuid.UUID,
	keys []string, args ...any) (*reply, error) {
	if once == nil {
		return s.client.Run(ctx, f, sc.script, keys, args...)
	}
	c := redisclient.NewCommand(f, 1+len(keys))
	c.Keys(place)
	c.Keys(keys...)
	c.Arguments(once.Fingerprint, requestID(ctx), onceLifetime.Milliseconds(), once.Seal.Seal(once.Credential), organization)
	c.Arguments(args...)
	r, err := s.client.RunCommand(ctx, sc.keyed, c)
	if err != nil {
		return nil, err
	}
	inner, err := once.open(r)
	if err == nil && !once.Replayed {
		s.noteOutcomes(organization, 1)
	}
	return inner, err
}

// open reads what idempotent_sealed.lua answers: the outcome, and the credential that goes with it.
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

// cell returns a cell that the idempotency key of this owner always has, as evenly drawn as any.
func (o *Idempotency) cell(owner string) uint16 {
	return binary.BigEndian.Uint16(hashOf("cell", owner, o.Key))
}

// firstMetadata returns the metadata of an object as the request that created it gave it: what repeats it may have the members
// in another order.
func (s *Store) firstMetadata(ctx context.Context, f flow, key, field, repeated string) (string, error) {
	if repeated == "" {
		return "", nil
	}
	first, err := s.client.Call(ctx, f, reads, "hget", key, field)
	if err != nil || first == nil { // nil: it is not kept any more
		return repeated, err
	}
	r := &reply{Values: []any{first}}
	return r.Text(0), r.Err
}

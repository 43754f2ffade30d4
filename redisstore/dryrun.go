package redisstore

import (
	"context"
	"errors"
)

// errDryRun finishes what a dry run has reserved: it creates nothing.
var errDryRun = errors.New("a dry run creates nothing")

// dryRun runs a script of newDryScript, and returns the reply or the refusal that the operation would have given. Nothing is
// written; but like a read it may release holds whose time is up first, see releasingDueHolds.
func (s *Store) dryRun(ctx context.Context, dry *script, act actor, keys []string, args ...any) (*reply, error) {
	r, err := s.client.Run(ctx, act.flow, dry, keys, args...)
	if err != nil {
		return nil, err
	}
	would := r.List(0)
	if would.Err != nil {
		return nil, would.Err
	}
	return readReply(would.Values)
}

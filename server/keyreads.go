package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"remit/token"
)

// A key signs only after it has been published for a while, so a running instance knows it by then. One that was suspended
// (or cut off from its store) does not, and must not call a genuine token invalid: when a credential names an unknown key,
// the keys are read anew. Anybody can invent names of keys, so that happens once for all that wait, and once a second at
// the most.
const (
	keyReadPause = time.Second     // between two reads for unknown keys
	keysFresh    = 2 * time.Second // keys that were read longer ago cannot tell that a key does not exist
	keyReadTime  = 2 * time.Second // for one read
)

// keyReads reads the keys anew. The zero value reads nothing: the keys do not change.
type keyReads struct {
	mu    sync.Mutex
	read  func(context.Context) (*token.Keyring, error)
	began time.Time // the last read
	good  time.Time // when the last read began that succeeded
	ended chan struct{}
	err   error // of the last read
}

// join starts a read unless one is under way, and returns its error.
func (r *keyReads) join(ctx context.Context, use func(*token.Keyring)) error {
	r.mu.Lock()
	ended := r.ended
	if ended == nil {
		ended = make(chan struct{})
		r.ended, r.began = ended, time.Now()
		go r.run(r.read, ended, use)
	}
	r.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *keyReads) run(read func(context.Context) (*token.Keyring, error), ended chan struct{}, use func(*token.Keyring)) {
	var err error
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v", errPanic, cause)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.err = err; err == nil {
			r.good = r.began
		}
		r.ended = nil
		close(ended)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), keyReadTime)
	defer cancel()
	var keys *token.Keyring
	if keys, err = read(ctx); err == nil {
		use(keys)
	}
}

// age returns how long ago it was by the clock of the machine that counts more: one of them stands still while the machine
// is suspended, the other may be set back.
func age(at time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(at), now.Round(0).Sub(at.Round(0)))
}

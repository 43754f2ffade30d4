package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"remit/internal/token"
	"remit/server/internal/web"
)

// A key is published some time before it signs, so a running instance knows every key in use. One that was suspended, or
// cut off from its store, may not, and must not call a genuine token invalid: when a credential names an unknown key, the
// keys are read again. Anyone can invent key names, so concurrent requests share one read, and there is at most one read
// per second.
const (
	keyReadPause = time.Second     // between two reads for unknown keys
	keysFresh    = 2 * time.Second // keys read longer ago cannot prove that a key does not exist
	keyReadTime  = 2 * time.Second // for one read
)

// keyReads reads the keys again. The zero value reads nothing: the keys do not change.
type keyReads struct {
	mu    sync.Mutex
	read  func(context.Context) (*token.Keyring, error)
	began time.Time // of the last read
	good  time.Time // when the last successful read began
	ended chan struct{}
	err   error // of the last read
}

// join starts a read unless one is in progress, waits for it, and returns its error.
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
			err = fmt.Errorf("%w: %v", web.ErrPanic, cause)
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

// age returns the larger of the times since at by the monotonic and the wall clock. The first stops while a machine is
// suspended; the second may be set back.
func age(at time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(at), now.Round(0).Sub(at.Round(0)))
}

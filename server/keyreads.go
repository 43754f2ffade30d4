package server

import (
	"context"
	"errors"
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

// FollowKeys has the server read its keys so whenever ReadKeys is called, or a credential names a key that it does not know.
func (s *Server) FollowKeys(read func(context.Context) (*token.Keyring, error)) {
	s.keyReads.mu.Lock()
	defer s.keyReads.mu.Unlock()
	s.keyReads.read = read
}

// ReadKeys reads the keys given to FollowKeys now, or waits for a read that is under way.
func (s *Server) ReadKeys(ctx context.Context) error {
	return s.keyReads.join(ctx, s.SetKeyring)
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

// seekKey returns nil once the keys are fresh enough to tell that a key does not exist, else errStaleKeys.
func (s *Server) seekKey() error {
	r := &s.keyReads
	r.mu.Lock()
	follows, due := r.read != nil, r.ended != nil || age(r.began) >= keyReadPause
	r.mu.Unlock()
	if !follows {
		return nil
	}
	if due {
		_ = s.ReadKeys(context.Background()) // whose time is bounded
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if age(r.good) > keysFresh {
		return errStaleKeys
	}
	return nil
}

// age returns how long ago it was by the clock of the machine that counts more: one of them stands still while the machine
// is suspended, the other may be set back.
func age(at time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(at), now.Round(0).Sub(at.Round(0)))
}

// withKey checks a credential, and once more with keys just read when it names a key that is not known.
func withKey[T any](s *Server, check func(*verifier) (T, error)) (T, error) {
	var none T
	v := s.verifier.Load()
	if v == nil {
		return none, errNoKeyring
	}
	checked, err := check(v)
	if !errors.Is(err, token.ErrUnknownKey) {
		return checked, err
	}
	if err := s.seekKey(); err != nil {
		return none, err
	}
	if now := s.verifier.Load(); now != v {
		return check(now)
	}
	return none, err
}

// parseRefresh is token.Keyring.ParseRefresh with the keys of now. Errors: errNoKeyring, errStaleKeys, and those of
// the token package for one that is not valid.
func (s *Server) parseRefresh(text string) (token.RefreshToken, error) {
	return withKey(s, func(v *verifier) (token.RefreshToken, error) { return v.keys.ParseRefresh(text) })
}

// verifyAccess is token.Keyring.VerifyAccess with the keys of now.
func (s *Server) verifyAccess(text string) (token.Access, error) {
	return withKey(s, func(v *verifier) (token.Access, error) { return v.keys.VerifyAccess(text, time.Now()) })
}

// cannotSay tells trouble with the keys from a credential that is not valid.
func cannotSay(err error) bool { return errors.Is(err, errStaleKeys) || errors.Is(err, errNoKeyring) }

package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	// A token is renewed at a random moment between these parts of its lifetime, so that a fleet that began together
	// does not renew together, and not used after the last part, as it has to arrive in time.
	renewFrom, renewUntil, useUntil = 0.75, 0.90, 0.98

	// flightLimit ends an exchange or refresh, over all its attempts.
	flightLimit = 30 * time.Second

	// renewPause is the time between early renewals that fail, half of it at least.
	renewPause = 10 * time.Second

	// longestLifetime bounds the seconds that a token is taken to live: more would not fit into a time.Duration.
	longestLifetime = 1 << 30

	// repeatWithin is how long a refresh token is presented again after a lost answer. The service returns the same
	// successor for 60 seconds; after that it would have to take the token for stolen.
	repeatWithin = 50 * time.Second
)

// tokens keeps an agent's tokens fresh. Time is measured on this machine's monotonic clock, from when a token was
// received, so its clock need not agree with the service's.
type tokens struct {
	issuer *caller // without a credential
	agent  string
	secret hidden

	wall func() time.Time // the clock that goes on while the machine sleeps

	mu          sync.Mutex
	access      string // empty: none
	renewAt     time.Time
	usableUntil time.Time
	refresh     string  // empty: none
	doubt       moment  // since when refresh may be spent, for want of an answer; zero: it is not
	flight      *flight // the one exchange or refresh under way; nil: none
}

// moment is a moment on both clocks. The monotonic one stands still while the machine sleeps, and the other may be set.
type moment struct{ monotonic, wall time.Time }

// wallClock reads the clock without its monotonic part.
func wallClock() time.Time { return time.Now().Round(0) }

// until is how much time may have passed: the more by either clock.
func (m moment) until(later moment) time.Duration {
	return max(later.monotonic.Sub(m.monotonic), later.wall.Sub(m.wall))
}

// flight is one exchange or refresh, and all who wait for it.
type flight struct {
	landed chan struct{} // closed when the other fields are set
	access string
	err    error
}

// tokenPair is the answer to an exchange and to a refresh.
type tokenPair struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
}

// get returns an access token that is not the refused one. It waits only when there is none that can be used: a token
// that should be renewed still serves while that happens.
func (t *tokens) get(ctx context.Context, refused string) (string, error) {
	t.mu.Lock()
	if refused != "" && t.access == refused {
		t.access = ""
	}
	now, access := time.Now(), t.access
	usable := access != "" && now.Before(t.usableUntil)
	if usable && now.Before(t.renewAt) {
		t.mu.Unlock()
		return access, nil
	}
	f := t.board(ctx)
	t.mu.Unlock()
	if usable {
		return access, nil
	}
	return f.wait(ctx)
}

// renew gets a new access token, whatever the state of the present one.
func (t *tokens) renew(ctx context.Context) (string, error) {
	t.mu.Lock()
	f := t.board(ctx)
	t.mu.Unlock()
	return f.wait(ctx)
}

// board returns the flight that is under way, or starts one. It does not end with the ctx of whoever came first, for
// others may wait for it, but by flightLimit. Called with mu held.
func (t *tokens) board(ctx context.Context) *flight {
	if t.flight == nil {
		t.flight = &flight{landed: make(chan struct{})}
		go t.fly(context.WithoutCancel(ctx), t.flight)
	}
	return t.flight
}

// wait returns the flight's access token. A waiter whose ctx ends leaves; the flight goes on.
func (f *flight) wait(ctx context.Context) (string, error) {
	select {
	case <-f.landed:
		return f.access, f.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (t *tokens) fly(ctx context.Context, f *flight) {
	ctx, cancel := context.WithTimeout(ctx, flightLimit)
	defer cancel()
	pair, err := t.obtain(ctx)

	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.keep(pair)
	} else {
		t.renewAt = time.Now().Add(between(renewPause/2, renewPause))
	}
	f.access, f.err = pair.AccessToken, err
	t.flight = nil
	close(f.landed)
}

// obtain refreshes, or exchanges the secret when there is no refresh token or it is refused.
func (t *tokens) obtain(ctx context.Context) (tokenPair, error) {
	if presented, left := t.present(); presented != "" {
		pair, err := t.refreshWith(ctx, presented, left)
		if err == nil {
			return pair, nil
		}
		// What had less than its time may have failed for want of it, which the secret does not need.
		if short := left < flightLimit; !hasCode(err, codeInvalidRefreshToken) && !short && t.mayPresent() {
			return pair, err
		}
		t.forget(presented)
	}
	body := map[string]string{"agent_id": t.agent, "secret": t.secret.reveal()}
	return t.ask(ctx, call{path: "/v1/auth/token", body: body})
}

// refreshWith presents the refresh token for as long as that is left.
func (t *tokens) refreshWith(ctx context.Context, presented string, left time.Duration) (tokenPair, error) {
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	body := map[string]string{"refresh_token": presented}
	return t.ask(ctx, call{path: "/v1/auth/refresh", body: body, mayGoOn: t.mayPresent})
}

// present returns the refresh token, if it may be presented, and for how long it may. It takes it for spent until keep
// has its successor.
func (t *tokens) present() (string, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := moment{time.Now(), t.wall()}
	if t.doubt.wall.IsZero() {
		t.doubt = now
	}
	left := repeatWithin - t.doubt.until(now)
	if left <= 0 {
		t.refresh = ""
	}
	return t.refresh, left
}

func (t *tokens) mayPresent() bool {
	_, left := t.present()
	return left > 0
}

// forget drops a refresh token that was refused.
func (t *tokens) forget(refused string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refresh == refused {
		t.refresh = ""
	}
}

// ask may be repeated: the service returns the same successor, and a second family of tokens does no harm.
func (t *tokens) ask(ctx context.Context, q call) (tokenPair, error) {
	q.method, q.effect = http.MethodPost, reads
	var pair tokenPair
	err := t.issuer.do(ctx, q, &pair)
	if err == nil && (pair.AccessToken == "" || pair.ExpiresIn <= 0) {
		return tokenPair{}, errors.New("remit: POST " + q.path + ": the answer has no token, or no lifetime")
	}
	return pair, err
}

// keep takes a pair that was just received into use. Called with mu held.
func (t *tokens) keep(p tokenPair) {
	now, lifetime := time.Now(), time.Duration(min(p.ExpiresIn, longestLifetime))*time.Second
	t.access, t.refresh, t.doubt = p.AccessToken, p.RefreshToken, moment{}
	t.renewAt = now.Add(between(part(lifetime, renewFrom), part(lifetime, renewUntil)))
	t.usableUntil = now.Add(part(lifetime, useUntil))
}

func part(d time.Duration, of float64) time.Duration { return time.Duration(float64(d) * of) }

// between is a random duration from least up to most.
func between(least, most time.Duration) time.Duration { return least + rand.N(most-least) }

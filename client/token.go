package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// A token is renewed at a random moment between the first two fractions of its lifetime, so that a fleet that started
	// together does not renew together. It is not used after the last fraction, because it must arrive in time.
	renewFrom, renewUntil, useUntil = 0.75, 0.90, 0.98

	// renewalTime bounds an exchange or refresh with all its attempts.
	renewalTime = 30 * time.Second

	// renewPause is the longest pause after a failed early renewal; the shortest is half of it.
	renewPause = 10 * time.Second

	// longestLifetime bounds a token's lifetime in seconds, so that it fits into a time.Duration.
	longestLifetime = 1 << 30

	// repeatWithin is how long a refresh token is presented again after a lost response. The service returns the same
	// successor for 60 seconds; after that it treats the token as stolen.
	repeatWithin = 50 * time.Second
)

// tokens keeps an agent's tokens fresh. It measures lifetimes from the receipt of a token, so the clocks of this machine and
// the service need not agree.
type tokens struct {
	issuer   *caller     // without a credential
	exchange func() call // obtains the first tokens

	wall func() time.Time // advances while the machine is suspended, unlike the monotonic clock

	mu          sync.Mutex
	access      string // empty: none
	renewAt     time.Time
	usableUntil time.Time
	refresh     string   // empty: none
	doubt       moment   // since when refresh may be used up, because no response came; zero: it is not
	renewal     *renewal // the exchange or refresh in flight; nil: none
}

// moment is a moment on both clocks: the monotonic one stops while the machine is suspended, the other can be set.
type moment struct{ monotonic, wall time.Time }

// wallClock reads the clock without its monotonic part.
func wallClock() time.Time { return time.Now().Round(0) }

// until returns the time between two moments, by the clock that advanced more.
func (m moment) until(later moment) time.Duration {
	return max(later.monotonic.Sub(m.monotonic), later.wall.Sub(m.wall))
}

// renewal is one exchange or refresh in flight, shared by all callers that wait for it (single flight).
type renewal struct {
	done   chan struct{} // closed when the other fields are set
	access string
	err    error
}

// TokenPair is an access token and a refresh token.
type TokenPair struct {
	AccessToken  Credential `json:"access_token"`
	RefreshToken Credential `json:"refresh_token"` // empty: none, as for an assertion
	TokenType    string     `json:"token_type"`    // bearer, or DPoP for tokens that are bound to a key
	ExpiresIn    int64      `json:"expires_in"`    // lifetime of the access token in seconds
}

// Exchange exchanges an agent's secret for a new pair of tokens, for callers that store and renew tokens themselves. An
// Agent does this itself.
func (c *Client) Exchange(ctx context.Context, agentID, secret string) (TokenPair, error) {
	body := map[string]string{"agent_id": agentID, "secret": secret}
	q := call{method: http.MethodPost, path: "/v1/auth/token", body: body, semantics: safe}
	return decoded[TokenPair](ctx, &caller{client: c}, q)
}

// ExchangeWith is Exchange for any credential.
func (c *Client) ExchangeWith(ctx context.Context, agentID string, o AgentOptions) (TokenPair, error) {
	agent, err := c.AgentWith(agentID, o)
	if err != nil {
		return TokenPair{}, err
	}
	own := agent.caller.tokens
	return own.request(ctx, own.exchange())
}

// get returns an access token other than the refused one. It waits only without a usable token: a token that is due for
// renewal is returned while the renewal is in flight.
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
	r := t.share(ctx)
	t.mu.Unlock()
	if usable {
		return access, nil
	}
	return r.wait(ctx)
}

// renew returns a new access token, whatever the state of the current one.
func (t *tokens) renew(ctx context.Context) (string, error) {
	t.mu.Lock()
	r := t.share(ctx)
	t.mu.Unlock()
	return r.wait(ctx)
}

// share returns the renewal in flight, or starts one. It is bounded by renewalTime and not by the ctx, because other callers
// may wait for it too. Called with mu held.
func (t *tokens) share(ctx context.Context) *renewal {
	if t.renewal == nil {
		t.renewal = &renewal{done: make(chan struct{})}
		go t.do(context.WithoutCancel(ctx), t.renewal)
	}
	return t.renewal
}

// wait returns the access token of the renewal. The renewal continues after the ctx of a waiting caller has ended.
func (r *renewal) wait(ctx context.Context) (string, error) {
	select {
	case <-r.done:
		return r.access, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// do runs a renewal and passes its result to all callers.
func (t *tokens) do(ctx context.Context, r *renewal) {
	ctx, cancel := context.WithTimeout(ctx, renewalTime)
	defer cancel()
	pair, err := t.obtain(ctx)

	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.keep(pair)
	} else {
		t.renewAt = time.Now().Add(between(renewPause/2, renewPause))
	}
	r.access, r.err = string(pair.AccessToken), err
	t.renewal = nil
	close(r.done)
}

// obtain refreshes, or exchanges the agent's credential without a refresh token or when the service refuses it.
func (t *tokens) obtain(ctx context.Context) (TokenPair, error) {
	if presented, left := t.present(); presented != "" {
		pair, err := t.refreshWith(ctx, presented, left)
		if err == nil {
			return pair, nil
		}
		// A shortened refresh may have failed for lack of time. An exchange has time enough.
		if short := left < renewalTime; !hasCode(err, codeInvalidRefreshToken) && !short && t.mayPresent() {
			return pair, err
		}
		t.forget(presented)
	}
	return t.request(ctx, t.exchange())
}

// refreshWith presents the refresh token, for the time left at most.
func (t *tokens) refreshWith(ctx context.Context, presented string, left time.Duration) (TokenPair, error) {
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	body := map[string]string{"refresh_token": presented}
	return t.request(ctx, call{path: "/v1/auth/refresh", body: body, mayRetry: t.mayPresent})
}

// present returns the refresh token, or "" if there is none to present, and how long it may still be presented. From the
// first call on the token may be used up, until keep stores its successor.
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

// forget drops a refused refresh token.
func (t *tokens) forget(refused string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refresh == refused {
		t.refresh = ""
	}
}

// request sends a call for tokens. It counts as safe: a repeated refresh returns the same successor, and a repeated exchange
// only opens a second token family.
func (t *tokens) request(ctx context.Context, q call) (TokenPair, error) {
	q.method, q.semantics = http.MethodPost, safe
	pair, err := decoded[TokenPair](ctx, t.issuer, q)
	switch {
	case err != nil:
		return TokenPair{}, err
	case pair.AccessToken == "" || pair.ExpiresIn <= 0:
		return TokenPair{}, errors.New("remit: POST " + q.path + ": the answer has no token, or no lifetime")
	case t.issuer.prover != nil && !strings.EqualFold(pair.TokenType, "DPoP"):
		return TokenPair{}, errors.New("remit: POST " + q.path + ": the token is not bound to the key: the service does not know DPoP")
	}
	return pair, nil
}

// keep stores a pair that was just received. Called with mu held.
func (t *tokens) keep(p TokenPair) {
	now, lifetime := time.Now(), time.Duration(min(p.ExpiresIn, longestLifetime))*time.Second
	t.access, t.refresh, t.doubt = string(p.AccessToken), string(p.RefreshToken), moment{}
	t.renewAt = now.Add(between(part(lifetime, renewFrom), part(lifetime, renewUntil)))
	t.usableUntil = now.Add(part(lifetime, useUntil))
}

func part(d time.Duration, of float64) time.Duration { return time.Duration(float64(d) * of) }

// between returns a random duration from least up to most.
func between(least, most time.Duration) time.Duration { return least + rand.N(most-least) }

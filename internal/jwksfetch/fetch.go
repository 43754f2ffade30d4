package jwksfetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"remit/internal/outbound"
	"remit/internal/token"
)

const (
	places         = 8        // fetches at once of tenants whose hosts answer soon, and as many of the others
	placesOfTenant = 2        // of these, of one tenant
	maxSet         = 64 << 10 // bytes of a key set

	quickShare = 4 // a tenant may use a quarter of a quick place all the time
)

// fetchTimes bound a fetch.
type fetchTimes struct {
	wait  time.Duration // for a place
	fetch time.Duration // for connecting, sending and the response together
	soon  time.Duration // a fetch that takes as long is slow
	burst time.Duration // that the fetches of a tenant may take together before it counts as slow, beyond its quickShare
}

var usualTimes = fetchTimes{wait: 3 * time.Second, fetch: 5 * time.Second, soon: time.Second, burst: 30 * time.Second}

// The causes of failures: the only words that are logged and counted.
var (
	errBusy     = errors.New("too many other key sets are being read")
	errStatus   = errors.New("the host did not answer 200")
	errRedirect = errors.New("the host redirects, which is not followed")
	errTooLarge = fmt.Errorf("the host sent more than %d KiB", maxSet>>10)
	errSet      = errors.New("the host sent no usable key set")
	errTimeout  = errors.New("the host did not answer in time")
	errFailed   = errors.New("the connection failed")
	errPanic    = errors.New("a panic")
)

// fetch reads the keys of a source. took is 0 when no request was sent.
func (f *Fetcher) fetch(s Source, of *tenant) (keys token.JWKS, took time.Duration, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			f.log.Error("panic while reading keys", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	held := f.enter(of)
	if held == nil {
		return nil, 0, errBusy
	}
	defer held.Leave()
	ctx, cancel := context.WithTimeout(f.ctx, f.most.fetch)
	defer cancel()
	defer f.giveUpQuick(held, cancel).Stop()
	began := time.Now()
	raw, err := f.get(ctx, s.URL)
	took = max(time.Since(began), 1)
	if err != nil {
		return nil, took, causeOf(err)
	}
	if keys, err = token.ReadJWKS(raw, s.MaxKeys); err != nil {
		return nil, took, errSet
	}
	return keys, took, nil
}

// enter takes a place for a fetch, one of its tenant's own too; nil when there is none in time. Tenants with a slow host, and those
// that read all the time, are in the slow lane. A tenant with many hosts is no longer before another in the queue than one with two.
func (f *Fetcher) enter(of *tenant) *outbound.Place {
	ctx, cancel := context.WithTimeout(f.ctx, f.most.wait)
	defer cancel()
	return f.lanes.Enter(ctx, of.places, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.now().Before(of.slowUntil)
	})
}

// giveUpQuick makes a fetch that turns out to be slow go on in a place for slow ones, or end when none is free: tenants that no one
// knows yet must not hold the quick places. The timer is to be stopped when the fetch has ended.
func (f *Fetcher) giveUpQuick(held *outbound.Place, end context.CancelFunc) *time.Timer {
	return time.AfterFunc(f.most.soon, func() {
		if !held.Slow() {
			end()
		}
	})
}

func (f *Fetcher) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	request.Header.Set("User-Agent", "Remit")
	response, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode >= 300 && response.StatusCode <= 399:
		return nil, errRedirect
	case response.StatusCode != http.StatusOK:
		return nil, errStatus
	case response.ContentLength > maxSet:
		return nil, errTooLarge
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxSet+1))
	if err == nil && len(raw) > maxSet {
		return nil, errTooLarge
	}
	return raw, err
}

// causeOf names the cause of a failure in this package's words.
func causeOf(err error) error {
	for _, ours := range []error{errRedirect, errStatus, errTooLarge, outbound.ErrPrivateAddress, outbound.ErrPort} {
		if errors.Is(err, ours) {
			return ours
		}
	}
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var network net.Error
	switch {
	case errors.As(err, &name) && name.IsNotFound: // not which: names of the network behind would show
		return outbound.ErrPrivateAddress
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.As(err, &network) && network.Timeout():
		return errTimeout
	case errors.As(err, &certificate):
		return errors.New("the host's certificate is not valid")
	}
	return errFailed
}

// hostOf returns the host of a URL: a path or a query may contain a credential.
func hostOf(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return parsed.Host
}

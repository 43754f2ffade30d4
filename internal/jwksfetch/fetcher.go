// Package jwksfetch reads the key sets that agents and trusted issuers publish (RFC 7517). It fetches from addresses that tenants
// choose, so it bounds what each tenant and all together may take, of connections, time and memory, and discloses to no tenant what a
// foreign host said.
package jwksfetch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"remit/internal/outbound"
	"remit/internal/token"
)

const (
	// MaxSockets is how many sockets a Fetcher has open at most: two for a request, while it asks for the addresses of a name or
	// connects to one of each family.
	MaxSockets = 2 * 2 * places

	freshTime   = 5 * time.Minute  // for which keys are used without being read again
	staleTime   = time.Hour        // for which they are used while they cannot be read
	rereadPause = time.Minute      // between two reads of one URL, for keys that it did not have and while older keys help out
	failedPause = 10 * time.Second // between two reads of one URL that has no keys to help out
	slowTime    = 10 * time.Minute // for which a tenant counts as slow

	maxWaiting = 64 // requests that wait for keys of one tenant; further ones fail at once
)

// ErrNoKeys: the keys cannot be read now, and none that were read lately are left. It does not say why: that would tell what is
// in the network of this service, or what the host said.
var ErrNoKeys = errors.New("the keys at the URL cannot be read")

// Source is a key set of a tenant. The same URL of another tenant is another source, so that no tenant notices another.
type Source struct {
	Tenant  uuid.UUID // the organization
	URL     string    // as outbound.CheckURL allows it
	MaxKeys int       // keys used of the set, the first ones
}

// Config configures a Fetcher. The zero value works.
type Config struct {
	// AllowPrivate lets requests go to addresses that are not public.
	AllowPrivate bool
	// Resolver finds addresses. Nil is the default one.
	Resolver *net.Resolver
	// Log gets why keys could not be read, in words of this package. Nil discards it.
	Log *slog.Logger
	// Now is the clock. Nil is time.Now.
	Now func() time.Time
}

// Fetcher fetches key sets and caches them. It is safe for concurrent use. Close ends its work.
type Fetcher struct {
	log     *slog.Logger
	now     func() time.Time
	client  *http.Client
	most    fetchTimes
	ctx     context.Context // of all fetches
	stop    context.CancelFunc
	running sync.WaitGroup
	fetches *prometheus.CounterVec

	mu    sync.Mutex
	cache cache

	lanes *outbound.Lanes // places of fetches under way; see enter
}

// New returns a Fetcher.
func New(cfg Config) *Fetcher {
	f := &Fetcher{
		log: cfg.Log, now: cfg.Now, most: usualTimes, fetches: newFetches(), cache: newCache(usualBounds),
		client: outbound.NewClient(transport(cfg)), lanes: outbound.NewLanes(places),
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.now == nil {
		f.now = time.Now
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

func transport(cfg Config) *http.Transport {
	t := outbound.NewTransport(cfg.AllowPrivate, cfg.Resolver)
	t.DisableKeepAlives = true // the next request comes minutes later
	return t
}

// Close ends the fetches that are under way and waits for them. Later ones fail.
func (f *Fetcher) Close() {
	f.stop()
	f.running.Wait()
}

// Verify returns nil when one of the source's keys has signed the assertion. When none has, and the keys are older than a minute,
// it reads them again, because the signer may have new ones. Errors: ErrNoKeys; token.ErrUnknownKey, token.ErrSignature; that of
// ctx.
func (f *Fetcher) Verify(ctx context.Context, s Source, a *token.Assertion) error {
	first, err := f.keys(ctx, s, false)
	if err != nil {
		return err
	}
	refused := a.Verify(first.keys)
	if refused == nil {
		return nil
	}
	second, err := f.keys(ctx, s, true)
	if err != nil || second.read.Equal(first.read) {
		return cmp.Or(err, refused)
	}
	return a.Verify(second.keys)
}

// keys returns the keys of a source, if need be after fetching them. Requests for the same source share a fetch. again asks for
// keys that are not older than rereadPause.
func (f *Fetcher) keys(ctx context.Context, s Source, again bool) (keySet, error) {
	f.mu.Lock()
	e := f.cache.entry(s)
	if !e.due(f.now(), again) {
		defer f.mu.Unlock()
		return e.usable(f.now())
	}
	if e.tenant.waiting == maxWaiting {
		defer f.mu.Unlock()
		return e.usable(f.now())
	}
	if e.flight == nil {
		e.flight = make(chan struct{})
		e.tenant.flights++
		f.running.Add(1)
		go f.fly(e)
	}
	flight, tenant := e.flight, e.tenant
	tenant.waiting++
	f.mu.Unlock()
	var gaveUp error
	select {
	case <-flight:
	case <-ctx.Done():
		gaveUp = ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	tenant.waiting--
	if gaveUp != nil {
		return keySet{}, gaveUp
	}
	return e.usable(f.now())
}

// fly fetches the keys of an entry and keeps them. It ends within the times of f.most.
func (f *Fetcher) fly(e *entry) {
	defer f.running.Done()
	f.mu.Lock()
	began, tenant := f.now(), e.tenant
	f.mu.Unlock()
	keys, took, err := f.fetch(e.Source, tenant)
	f.mu.Lock()
	defer f.mu.Unlock()
	e.tried, e.failed = began, err != nil
	if err == nil {
		e.keySet = keySet{keys, began}
	}
	if tenant.spend(took, f.most.burst, f.now()) || took >= f.most.soon {
		tenant.slowUntil = f.now().Add(slowTime)
	}
	close(e.flight)
	e.flight = nil
	tenant.flights--
	f.cache.resize(e)
	f.count(err)
	if err != nil {
		f.log.Warn("keys cannot be read", "host", hostOf(e.URL), "org_id", e.Tenant, "cause", err.Error())
	}
}

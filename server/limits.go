package server

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"
	"remit/redisstore"
)

// Limits bound what a client address may cost Redis without a credential. They are kept in this process: each of
// several instances has its own.
type Limits struct {
	// Off admits everything.
	Off bool
	// OrganizationsPerMinute is how many organizations an address may create. 0 means 300.
	OrganizationsPerMinute int
	// FailedAuthPerMinute is how many exchanges and refreshes of an address may fail, together. 0 means 600.
	FailedAuthPerMinute int
}

const (
	defaultOrganizations = 300 // per minute
	defaultFailedAuth    = 600 // per minute

	limitWindow = time.Minute
	// maxAddresses bounds the buckets of a limit, about 16 MB. The address unseen for longest is forgotten, and finds a
	// full bucket when it returns.
	maxAddresses = 1 << 16
)

// limits are those of a server; nil ones are off.
type limits struct {
	organizations *addressLimit
	failedAuth    *addressLimit
}

func newLimits(cfg Limits, now func() time.Time) limits {
	if cfg.Off {
		return limits{}
	}
	return limits{
		organizations: newAddressLimit("organizations", orDefault(cfg.OrganizationsPerMinute, defaultOrganizations), maxAddresses, now),
		failedAuth:    newAddressLimit("failed-auth", orDefault(cfg.FailedAuthPerMinute, defaultFailedAuth), maxAddresses, now),
	}
}

func orDefault(given, usual int) int {
	if given > 0 {
		return given
	}
	return usual
}

// addressLimit is a token bucket for each client address: full it holds a minute's quota, which comes back evenly.
type addressLimit struct {
	policy  string // its name in the headers
	quota   int    // tokens in limitWindow
	now     func() time.Time
	buckets *lru.Cache[netip.Addr, *rate.Limiter]
}

func newAddressLimit(policy string, quota, addresses int, now func() time.Time) *addressLimit {
	buckets, err := lru.New[netip.Addr, *rate.Limiter](addresses)
	if err != nil {
		panic(err) // addresses is not positive
	}
	return &addressLimit{policy: policy, quota: quota, now: now, buckets: buckets}
}

func (l *addressLimit) perSecond() float64 { return float64(l.quota) / limitWindow.Seconds() }

// bucket returns the bucket of an address, a full one at first.
func (l *addressLimit) bucket(address netip.Addr) *rate.Limiter {
	if bucket, known := l.buckets.Get(address); known {
		return bucket
	}
	fresh := rate.NewLimiter(rate.Limit(l.perSecond()), l.quota)
	if bucket, known, _ := l.buckets.PeekOrAdd(address, fresh); known {
		return bucket // another request was faster
	}
	return fresh
}

// standing is what an address has left of a limit.
type standing struct {
	remaining int
	reset     int // seconds: until there is more, and long enough to use up the remaining at an even pace
}

// take spends a token, if there is one.
func (l *addressLimit) take(address netip.Addr) (standing, bool) {
	bucket, now := l.bucket(address), l.now()
	taken := bucket.AllowN(now, 1)
	return l.standing(bucket.TokensAt(now)), taken
}

// look spends nothing.
func (l *addressLimit) look(address netip.Addr) standing {
	return l.standing(l.bucket(address).TokensAt(l.now()))
}

// owe spends a token even when there is none. Requests that were under way together find the same bucket, so it may
// have been promised more often than it holds. The debt is paid before the next is admitted; it ends at a full bucket,
// so that nobody waits for more than a window.
func (l *addressLimit) owe(address netip.Addr) standing {
	bucket, now := l.bucket(address), l.now()
	if bucket.TokensAt(now) > float64(-l.quota) {
		bucket.ReserveN(now, 1)
	}
	return l.standing(bucket.TokensAt(now))
}

func (l *addressLimit) standing(tokens float64) standing {
	const noise = 1e-6 // of adding up fractions
	remaining := max(math.Floor(tokens+noise), 0)
	wait := max(remaining, 1-tokens) / l.perSecond()
	return standing{int(remaining), max(int(math.Ceil(wait-noise)), 1)}
}

// tell writes the headers of draft-ietf-httpapi-ratelimit-headers-10.
func (l *addressLimit) tell(ctx *fasthttp.RequestCtx, left standing) {
	header := &ctx.Response.Header
	header.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", l.policy, l.quota, int(limitWindow.Seconds())))
	header.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", l.policy, left.remaining, left.reset))
}

// admitOrganization refuses who may not create an organization, and addresses that have created too many.
func (s *Server) admitOrganization(ctx *fasthttp.RequestCtx) error {
	if err := s.admitCreator(ctx); err != nil {
		return err
	}
	limit := s.limits.organizations
	if limit == nil {
		return nil
	}
	left, taken := limit.take(s.clientAddress(ctx))
	limit.tell(ctx, left)
	if !taken {
		s.counts.limitedOrganizations.Inc()
		return &rateLimited{left.reset}
	}
	return nil
}

// admitAuth refuses addresses that have failed too often; it goes before whatever checks a credential that anybody can
// try. countAuth goes after.
func (s *Server) admitAuth(ctx *fasthttp.RequestCtx) error {
	limit := s.limits.failedAuth
	if limit == nil {
		return nil
	}
	left := limit.look(s.clientAddress(ctx))
	limit.tell(ctx, left)
	if left.remaining == 0 {
		s.counts.limitedTokens.Inc()
		return &rateLimited{left.reset}
	}
	return nil
}

// countAuth notes how a check that admitAuth let pass has ended. Only a wrong credential costs; success, malformed input
// and trouble with the store do not.
func (s *Server) countAuth(ctx *fasthttp.RequestCtx, err error) {
	limit := s.limits.failedAuth
	if limit == nil || !isWrongCredential(err) {
		return
	}
	limit.tell(ctx, limit.owe(s.clientAddress(ctx)))
}

func isWrongCredential(err error) bool {
	return errors.Is(err, redisstore.ErrInvalidCredentials) || errors.Is(err, redisstore.ErrInvalidRefreshToken) ||
		errors.Is(err, redisstore.ErrTokenReused) || errors.Is(err, errWrongBootstrap)
}

// rateLimited is errRateLimited with the seconds after which the client may try again.
type rateLimited struct{ retryAfter int }

func (e *rateLimited) Error() string { return errRateLimited.Error() }
func (e *rateLimited) Unwrap() error { return errRateLimited }

package access

import (
	"fmt"
	"math"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"
)

const (
	DefaultOrganizations = 300 // per minute
	DefaultFailedAuth    = 600 // per minute, of an agent at an address

	limitWindow = time.Minute
	// MaxAddresses bounds the buckets of a limiter, about 16 MB. It evicts the least recently used bucket, which starts
	// full again.
	MaxAddresses = 1 << 16
)

// RateLimiter has a token bucket for each key, such as a client address. A full bucket holds a minute's quota and refills
// evenly.
type RateLimiter[K comparable] struct {
	policy  string // its name in the headers
	Quota   int    // tokens in limitWindow
	now     func() time.Time
	Buckets *lru.Cache[K, *rate.Limiter]
}

// NewRateLimiter returns a limiter of quota tokens a minute for each key, which remembers so many keys.
func NewRateLimiter[K comparable](policy string, quota, keys int, now func() time.Time) *RateLimiter[K] {
	buckets, err := lru.New[K, *rate.Limiter](keys)
	if err != nil {
		panic(err) // keys is not positive
	}
	return &RateLimiter[K]{policy: policy, Quota: quota, now: now, Buckets: buckets}
}

func (l *RateLimiter[K]) perSecond() float64 { return float64(l.Quota) / limitWindow.Seconds() }

// bucket returns the bucket of a key; a new one is full.
func (l *RateLimiter[K]) bucket(key K) *rate.Limiter {
	if bucket, known := l.Buckets.Get(key); known {
		return bucket
	}
	fresh := rate.NewLimiter(rate.Limit(l.perSecond()), l.Quota)
	if bucket, known, _ := l.Buckets.PeekOrAdd(key, fresh); known {
		return bucket // a concurrent request was first
	}
	return fresh
}

// BucketState is what remains in a bucket.
type BucketState struct {
	Remaining int
	Reset     int // seconds until there is more, and enough to spend what remains at an even pace
}

// Allow takes a token, if there is one.
func (l *RateLimiter[K]) Allow(key K) (BucketState, bool) {
	bucket, now := l.bucket(key), l.now()
	taken := bucket.AllowN(now, 1)
	return l.stateOf(bucket.TokensAt(now)), taken
}

// Peek takes nothing, and creates no bucket for a new key.
func (l *RateLimiter[K]) Peek(key K) BucketState {
	if bucket, known := l.Buckets.Get(key); known {
		return l.stateOf(bucket.TokensAt(l.now()))
	}
	return l.stateOf(float64(l.Quota))
}

// Debit takes a token even from an empty bucket: concurrent requests all see the tokens of the same bucket, so more of them
// may pass than it holds. The bucket repays this debt before it allows another request. The debt is at most a full bucket,
// so that no client waits longer than limitWindow.
func (l *RateLimiter[K]) Debit(key K) BucketState {
	bucket, now := l.bucket(key), l.now()
	if bucket.TokensAt(now) > float64(-l.Quota) {
		bucket.ReserveN(now, 1)
	}
	return l.stateOf(bucket.TokensAt(now))
}

func (l *RateLimiter[K]) stateOf(tokens float64) BucketState {
	const noise = 1e-6 // of adding fractions
	remaining := max(math.Floor(tokens+noise), 0)
	wait := max(remaining, 1-tokens) / l.perSecond()
	return BucketState{int(remaining), max(int(math.Ceil(wait-noise)), 1)}
}

// WriteHeaders writes the headers of draft-ietf-httpapi-ratelimit-headers-10.
func (l *RateLimiter[K]) WriteHeaders(ctx *fasthttp.RequestCtx, left BucketState) {
	header := &ctx.Response.Header
	header.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", l.policy, l.Quota, int(limitWindow.Seconds())))
	header.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", l.policy, left.Remaining, left.Reset))
}

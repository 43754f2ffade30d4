package server

import (
	"fmt"
	"math"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"
)

const (
	defaultOrganizations = 300 // per minute
	defaultFailedAuth    = 600 // per minute, of an agent at an address

	limitWindow = time.Minute
	// maxAddresses bounds the buckets of a limiter, about 16 MB. It evicts the least recently used bucket, which starts
	// full again.
	maxAddresses = 1 << 16
)

// rateLimiter has a token bucket for each key, such as a client address. A full bucket holds a minute's quota and refills
// evenly.
type rateLimiter[K comparable] struct {
	policy  string // its name in the headers
	quota   int    // tokens in limitWindow
	now     func() time.Time
	buckets *lru.Cache[K, *rate.Limiter]
}

func newRateLimiter[K comparable](policy string, quota, keys int, now func() time.Time) *rateLimiter[K] {
	buckets, err := lru.New[K, *rate.Limiter](keys)
	if err != nil {
		panic(err) // keys is not positive
	}
	return &rateLimiter[K]{policy: policy, quota: quota, now: now, buckets: buckets}
}

func (l *rateLimiter[K]) perSecond() float64 { return float64(l.quota) / limitWindow.Seconds() }

// bucket returns the bucket of a key; a new one is full.
func (l *rateLimiter[K]) bucket(key K) *rate.Limiter {
	if bucket, known := l.buckets.Get(key); known {
		return bucket
	}
	fresh := rate.NewLimiter(rate.Limit(l.perSecond()), l.quota)
	if bucket, known, _ := l.buckets.PeekOrAdd(key, fresh); known {
		return bucket // a concurrent request was first
	}
	return fresh
}

// bucketState is what remains in a bucket.
type bucketState struct {
	remaining int
	reset     int // seconds until there is more, and enough to spend what remains at an even pace
}

// allow takes a token, if there is one.
func (l *rateLimiter[K]) allow(key K) (bucketState, bool) {
	bucket, now := l.bucket(key), l.now()
	taken := bucket.AllowN(now, 1)
	return l.stateOf(bucket.TokensAt(now)), taken
}

// peek takes nothing, and creates no bucket for a new key.
func (l *rateLimiter[K]) peek(key K) bucketState {
	if bucket, known := l.buckets.Get(key); known {
		return l.stateOf(bucket.TokensAt(l.now()))
	}
	return l.stateOf(float64(l.quota))
}

// debit takes a token even from an empty bucket: concurrent requests all see the tokens of the same bucket, so more of them
// may pass than it holds. The bucket repays this debt before it allows another request. The debt is at most a full bucket,
// so that no client waits longer than limitWindow.
func (l *rateLimiter[K]) debit(key K) bucketState {
	bucket, now := l.bucket(key), l.now()
	if bucket.TokensAt(now) > float64(-l.quota) {
		bucket.ReserveN(now, 1)
	}
	return l.stateOf(bucket.TokensAt(now))
}

func (l *rateLimiter[K]) stateOf(tokens float64) bucketState {
	const noise = 1e-6 // of adding fractions
	remaining := max(math.Floor(tokens+noise), 0)
	wait := max(remaining, 1-tokens) / l.perSecond()
	return bucketState{int(remaining), max(int(math.Ceil(wait-noise)), 1)}
}

// writeHeaders writes the headers of draft-ietf-httpapi-ratelimit-headers-10.
func (l *rateLimiter[K]) writeHeaders(ctx *fasthttp.RequestCtx, left bucketState) {
	header := &ctx.Response.Header
	header.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", l.policy, l.quota, int(limitWindow.Seconds())))
	header.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", l.policy, left.remaining, left.reset))
}

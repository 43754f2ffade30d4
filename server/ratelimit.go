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
	// maxAddresses bounds the buckets of a limit, about 16 MB. The one unused for longest is forgotten, and is full when it
	// is asked for again.
	maxAddresses = 1 << 16
)

// keyedLimit is a token bucket for each key, such as a client address: full it holds a minute's quota, which comes back
// evenly.
type keyedLimit[K comparable] struct {
	policy  string // its name in the headers
	quota   int    // tokens in limitWindow
	now     func() time.Time
	buckets *lru.Cache[K, *rate.Limiter]
}

func newKeyedLimit[K comparable](policy string, quota, keys int, now func() time.Time) *keyedLimit[K] {
	buckets, err := lru.New[K, *rate.Limiter](keys)
	if err != nil {
		panic(err) // keys is not positive
	}
	return &keyedLimit[K]{policy: policy, quota: quota, now: now, buckets: buckets}
}

func (l *keyedLimit[K]) perSecond() float64 { return float64(l.quota) / limitWindow.Seconds() }

// bucket returns the bucket of a key, a full one at first.
func (l *keyedLimit[K]) bucket(key K) *rate.Limiter {
	if bucket, known := l.buckets.Get(key); known {
		return bucket
	}
	fresh := rate.NewLimiter(rate.Limit(l.perSecond()), l.quota)
	if bucket, known, _ := l.buckets.PeekOrAdd(key, fresh); known {
		return bucket // another request was faster
	}
	return fresh
}

// standing is what a key has left of a limit.
type standing struct {
	remaining int
	reset     int // seconds: until there is more, and long enough to use up the remaining at an even pace
}

// take spends a token, if there is one.
func (l *keyedLimit[K]) take(key K) (standing, bool) {
	bucket, now := l.bucket(key), l.now()
	taken := bucket.AllowN(now, 1)
	return l.standing(bucket.TokensAt(now)), taken
}

// look spends nothing, and keeps no bucket for a key that has spent nothing either.
func (l *keyedLimit[K]) look(key K) standing {
	if bucket, known := l.buckets.Get(key); known {
		return l.standing(bucket.TokensAt(l.now()))
	}
	return l.standing(float64(l.quota))
}

// owe spends a token even when there is none. Requests that were under way together find the same bucket, so it may
// have been promised more often than it holds. The debt is paid before the next is admitted; it ends at a full bucket,
// so that nobody waits for more than a window.
func (l *keyedLimit[K]) owe(key K) standing {
	bucket, now := l.bucket(key), l.now()
	if bucket.TokensAt(now) > float64(-l.quota) {
		bucket.ReserveN(now, 1)
	}
	return l.standing(bucket.TokensAt(now))
}

func (l *keyedLimit[K]) standing(tokens float64) standing {
	const noise = 1e-6 // of adding up fractions
	remaining := max(math.Floor(tokens+noise), 0)
	wait := max(remaining, 1-tokens) / l.perSecond()
	return standing{int(remaining), max(int(math.Ceil(wait-noise)), 1)}
}

// tell writes the headers of draft-ietf-httpapi-ratelimit-headers-10.
func (l *keyedLimit[K]) tell(ctx *fasthttp.RequestCtx, left standing) {
	header := &ctx.Response.Header
	header.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", l.policy, l.quota, int(limitWindow.Seconds())))
	header.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", l.policy, left.remaining, left.reset))
}

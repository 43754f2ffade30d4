package redisstore

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// usage is what this instance knows of organizations' usage. An operation reserves what it is about to create, and finishes
// the reservation with its result. The store sends what was created to Redis about twice a second (usagesync.go) and until
// then counts it here. With one instance quotas are exact; several may together exceed them by what they create meanwhile.
type usage struct {
	defaults quantities
	rates    Rates
	now      func() time.Time

	accounts *lru.Cache[uuid.UUID, *account]
	// agents are those that have exchanged their secrets: only Redis's reply names their organization.
	agents *lru.Cache[uuid.UUID, *agentShare]

	pressure pressure
	syncing  syncing
}

const (
	maxAccounts    = 1 << 13 // organizations
	maxAgentShares = 1 << 16
	// burstTime is the size of a burst after a pause, in seconds of the rate.
	burstTime = 10
	// knownFor is how long an account is valid without a sync, while only other instances change it.
	knownFor = time.Second
)

// Rates are how many objects an organization and an agent may create per second and instance; 0 is unbounded.
type Rates struct{ Organization, Agent int }

func newUsage(cfg Config) *usage {
	u := &usage{defaults: defaultQuotas.over(cfg.Quotas), rates: cfg.Rates, now: time.Now}
	u.accounts, _ = lru.New[uuid.UUID, *account](maxAccounts)
	u.agents, _ = lru.New[uuid.UUID, *agentShare](maxAgentShares)
	return u
}

// agentShare is an agent's organization and its rate.
type agentShare struct {
	organization uuid.UUID
	bucket       *rate.Limiter // nil for unbounded
}

// account is the usage of one organization.
type account struct {
	organization uuid.UUID

	mu     sync.Mutex
	known  quantities // from Redis at the last sync
	quotas quantities // 0 is unbounded
	synced time.Time
	// Not in known: sending is on its way to Redis, unsent waits for the next sync, reserved is by operations in progress.
	sending, unsent, reserved quantities
	changes                   changes
	bucket                    *rate.Limiter // nil for unbounded
	queued                    bool          // for syncing
	prunedAt                  time.Time     // when its open sessions were last pruned because they reached the quota
	published                 int64         // bytes in the index of holdings, or unpublished
	publishedAt               time.Time

	turn sync.Mutex // of syncing
}

// unpublished means that this instance has not published yet, and another one may have.
const unpublished = -1

// changes are what the next sync sends to Redis. Expiring amounts are by class and time of expiry.
type changes struct {
	agentBytes, eventBytes int64
	expiring               map[expiry]int64
}

// expiry is when something expires, to an eighth of its lifetime.
type expiry struct {
	class     byte          // see note_usage.lua
	width     int64         // of its bucket, in minutes
	remaining time.Duration // at its creation, rounded to a quarter of the width; for 't' the time since 1970
}

// bucketsOfLifetime is how many buckets divide a lifetime, at most.
const bucketsOfLifetime = 8

// expiryOf returns the expiry of something with this lifetime and remaining time.
func expiryOf(class byte, lifetime, remaining time.Duration) expiry {
	width := widthOf(lifetime)
	return expiry{class, int64(width / time.Minute), remaining.Round(width / 4)}
}

func widthOf(lifetime time.Duration) time.Duration {
	width := time.Minute
	for width*bucketsOfLifetime < lifetime {
		width *= 2
	}
	return width
}

// pendingUntil returns the expiry of a pending transaction from its time of expiry by Redis's clock.
func pendingUntil(lifetime time.Duration, expires time.Time) expiry {
	width := widthOf(lifetime)
	return expiry{'t', int64(width / time.Minute), time.Duration(expires.UnixMilli()) * time.Millisecond / width * width}
}

func (c *changes) expire(e expiry, amount int64) {
	if c.expiring == nil {
		c.expiring = map[expiry]int64{}
	}
	c.expiring[e] += amount
}

func (c *changes) add(other changes) {
	c.agentBytes += other.agentBytes
	c.eventBytes += other.eventBytes
	for e, amount := range other.expiring {
		c.expire(e, amount)
	}
}

// demand is what an operation is about to create.
type demand struct {
	organization uuid.UUID
	agent        uuid.UUID // the caller; uuid.Nil for an API key
	resource     resource  // the kind of object; noResource for one that is not counted here
	lifetime     time.Duration
	expires      time.Time // of a transaction, by Redis's clock; zero when the reply was lost
	bytes        int64     // including a fixed part for each agent
	retained     time.Duration
	text         int64 // of an agent: the bytes that stay until it is deleted
	counted      int64 // bytes that the operation's script counts (include/count_bytes.lua); below 0 those that it frees
	events       int64 // bytes
	always       bool  // it is counted and never refused
	unpaced      bool  // no rate applies to it
}

// held is the usage that the demand adds.
func (d demand) held() quantities {
	var a quantities
	if d.resource != noResource {
		a[d.resource] = 1
	}
	a[bytesHeld] = d.bytes + d.counted
	return a
}

// addTo adds the demand to the changes that the next sync sends.
func (d demand) addTo(c *changes) {
	c.agentBytes += d.text
	c.eventBytes += d.events
	switch {
	case d.resource == pendingHeld && !d.expires.IsZero():
		c.expire(pendingUntil(d.lifetime, d.expires), 1)
	case d.resource == familiesHeld || d.resource == keysHeld:
		c.expire(expiryOf(classOf[d.resource], d.lifetime, d.lifetime), 1)
	}
	if d.retained > 0 {
		c.expire(expiryOf('b', d.retained, d.retained), d.bytes)
	}
}

var classOf = map[resource]byte{familiesHeld: 'f', keysHeld: 'i'}

// account returns the account of an organization. Call it only after a credential of the organization was verified.
func (u *usage) account(organization uuid.UUID) *account {
	if a, known := u.accounts.Get(organization); known {
		return a
	}
	fresh := &account{organization: organization, quotas: u.defaults, bucket: bucketOf(u.rates.Organization), published: unpublished}
	if a, known, _ := u.accounts.PeekOrAdd(organization, fresh); known {
		return a
	}
	return fresh
}

func bucketOf(perSecond int) *rate.Limiter {
	if perSecond == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(perSecond), perSecond*burstTime)
}

// used is the organization's usage including reservations. The caller must hold the lock.
func (a *account) used() quantities {
	sum := a.known
	sum.add(a.sending)
	sum.add(a.unsent)
	sum.add(a.reserved)
	return sum
}

// reservation is what an operation may create.
type reservation struct {
	u       *usage
	account *account // nil if nothing is reserved, or until the reply names the organization
	demand  demand
}

// reserve refuses a demand beyond a quota, a rate or the fair share; the caller counts the refusal. The caller must finish the
// reservation. Errors: *QuotaError, *RateError.
func (u *usage) reserve(d demand) (reservation, error) {
	now := u.now()
	if err := u.checkRate(d, now); err != nil {
		return reservation{}, err
	}
	if d.organization == uuid.Nil {
		return reservation{u: u, demand: d}, nil
	}
	a := u.account(d.organization)
	a.mu.Lock()
	stale, err := now.Sub(a.synced) > knownFor, a.refuses(d, u.pressure.level(now))
	if err == nil {
		a.reserved.add(d.held())
	}
	a.mu.Unlock()
	if stale || err != nil {
		u.syncing.enqueue(a)
	}
	if err != nil {
		return reservation{}, err
	}
	return reservation{u, a, d}, nil
}

// refuses returns the reason why the account cannot take the demand, or nil. The caller must hold the lock.
func (a *account) refuses(d demand, fairShare int64) error {
	if d.always {
		return nil
	}
	used := a.used()
	if r := d.resource; r != noResource && a.quotas[r] > 0 && used[r]+1 > a.quotas[r] {
		return &QuotaError{resourceNames[r], used[r], a.quotas[r]}
	}
	most := fairShare
	if quota := a.quotas[bytesHeld]; quota > 0 {
		most = min(most, quota)
	}
	if used[bytesHeld] > most-d.bytes-d.counted {
		return &QuotaError{resourceNames[bytesHeld], used[bytesHeld], most}
	}
	return nil
}

// checkRate checks that the rates have room. finish spends from them after the operation has succeeded, because only success
// proves who the caller is.
func (u *usage) checkRate(d demand, now time.Time) error {
	if d.always || d.unpaced {
		return nil
	}
	if d.agent != uuid.Nil {
		if share, known := u.agents.Get(d.agent); known {
			if err := wait(share.bucket, agentRate, now); err != nil {
				return err
			}
		}
	}
	if d.organization == uuid.Nil {
		return nil
	}
	return wait(u.account(d.organization).bucket, organizationRate, now)
}

func wait(bucket *rate.Limiter, limit string, now time.Time) error {
	if bucket == nil {
		return nil
	}
	if missing := 1 - bucket.TokensAt(now); missing > 0 {
		return &RateError{limit, time.Duration(math.Ceil(missing / float64(bucket.Limit()) * float64(time.Second)))}
	}
	return nil
}

// The limits of RateError, as they are counted.
const (
	organizationRate = "organization_rate"
	agentRate        = "agent_rate"
)

// spend takes one token from a bucket. Concurrent operations may leave it in debt.
func spend(bucket *rate.Limiter, now time.Time) {
	if bucket != nil {
		bucket.ReserveN(now, 1)
	}
}

// resize changes the memory of the reservation to what the operation has taken, and how long it stays.
func (r *reservation) resize(bytes int64, retained time.Duration) {
	if r.account != nil {
		r.account.mu.Lock()
		r.account.reserved[bytesHeld] += bytes - r.demand.bytes
		r.account.mu.Unlock()
	}
	r.demand.bytes, r.demand.retained = bytes, retained
}

// finish releases the reservation, and counts the demand unless the operation has certainly created nothing.
func (r reservation) finish(err error, replayed bool) {
	if r.account == nil && err == nil && r.u != nil && r.demand.organization != uuid.Nil { // the credential is valid
		r = r.countFor(r.demand.organization)
	}
	if r.account == nil {
		return
	}
	created := (err == nil || errors.Is(err, ErrOutcomeUnknown)) && !replayed
	a := r.account
	a.mu.Lock()
	held := r.demand.held()
	for i := range held {
		a.reserved[i] -= held[i]
	}
	if created {
		a.unsent.add(held)
		r.demand.addTo(&a.changes)
	}
	a.mu.Unlock()
	if created {
		r.u.created(a, r.demand)
	}
}

// finishFor is finish for an operation whose reply names the organization.
func (r reservation) finishFor(organization uuid.UUID, err error) {
	if r.account == nil && err == nil && r.u != nil {
		r = r.countFor(organization)
	}
	r.finish(err, false)
}

// countFor returns the reservation in the account of an organization whose credential is valid.
func (r reservation) countFor(organization uuid.UUID) reservation {
	r.account = r.u.account(organization)
	r.account.mu.Lock()
	r.account.reserved.add(r.demand.held())
	r.account.mu.Unlock()
	return r
}

func (u *usage) created(a *account, d demand) {
	now := u.now()
	if !d.always && !d.unpaced {
		spend(a.bucket, now)
		if d.agent != uuid.Nil {
			spend(u.shareOf(d.agent, a.organization).bucket, now)
		}
	}
	u.syncing.enqueue(a)
	if u.pressure.wrote(d.bytes + d.counted) {
		u.syncing.hurry()
	}
}

func (u *usage) shareOf(agent, organization uuid.UUID) *agentShare {
	if share, known := u.agents.Get(agent); known {
		return share
	}
	fresh := &agentShare{organization, bucketOf(u.rates.Agent)}
	if share, known, _ := u.agents.PeekOrAdd(agent, fresh); known {
		return share
	}
	return fresh
}

// organizationOf returns the agent's organization, or uuid.Nil before its first exchange at this instance.
func (u *usage) organizationOf(agent uuid.UUID) uuid.UUID {
	if share, known := u.agents.Get(agent); known {
		return share.organization
	}
	return uuid.Nil
}

// note counts changes that no quota refuses.
func (u *usage) note(organization uuid.UUID, change func(*changes, *quantities)) {
	a := u.account(organization)
	a.mu.Lock()
	change(&a.changes, &a.unsent)
	a.mu.Unlock()
	u.syncing.enqueue(a)
}

// quota returns an organization's quota as scripts take it, "" for unbounded.
func (u *usage) quota(organization uuid.UUID, r resource) string {
	a, known := u.accounts.Get(organization)
	quotas := u.defaults
	if known {
		a.mu.Lock()
		quotas = a.quotas
		a.mu.Unlock()
	}
	if quotas[r] == 0 {
		return ""
	}
	return orEmpty(&quotas[r])
}

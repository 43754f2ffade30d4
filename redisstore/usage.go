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

// usage is what this instance knows of what organizations hold. An operation reserves what it is about to create, and
// settles when it has come out. What was settled goes to Redis about twice a second (usage_sync.go), and until then
// counts here: of one instance quotas are exact, of several they may be exceeded by what arrives in that time.
type usage struct {
	defaults quantities
	rates    Rates
	now      func() time.Time

	accounts *lru.Cache[uuid.UUID, *account]
	// agents are those that have exchanged their secrets: only Redis's answer says whose they are.
	agents *lru.Cache[uuid.UUID, *agentShare]

	pressure pressure
	syncing  syncing
}

const (
	maxAccounts    = 1 << 13 // organizations
	maxAgentShares = 1 << 16
	// burstTime is how long after silence an organization or an agent may exceed its rate manifold.
	burstTime = 10 // seconds' worth at once
	// knownFor is how long an account is taken to be right while only other instances change it.
	knownFor = time.Second
)

// Rates are how many objects may be created in a second; 0 is unbounded. Each instance has its own.
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

// account is one organization's.
type account struct {
	organization uuid.UUID

	mu     sync.Mutex
	known  quantities // as Redis said when they were synced
	quotas quantities // 0 is unbounded
	synced time.Time
	// Not in known: sending is on its way to Redis, settled waits for that, reserved is by operations that are under way.
	sending, unsent, reserved quantities
	changes                   changes
	bucket                    *rate.Limiter // nil for unbounded
	queued                    bool          // for syncing
	prunedAt                  time.Time     // when its open sessions were looked through last, because they seemed too many
	published                 int64         // bytes that the holdings of all organizations tell of, or unpublished
	publishedAt               time.Time

	turn sync.Mutex // of syncing
}

// unpublished: this instance has not told yet, and does not know whether another one has.
const unpublished = -1

// changes are what Redis is to be told. What expires goes by class and by when it does.
type changes struct {
	agentBytes, eventBytes int64
	expiring               map[expiry]int64
}

// expiry is when something expires, to an eighth of its lifetime.
type expiry struct {
	class     byte          // see note_usage.lua
	width     int64         // minutes, of the bucket that it belongs to
	remaining time.Duration // when it was settled, to a quarter of the width; for 't' since 1970
}

// bucketsOfLifetime is how finely expiries are told apart.
const bucketsOfLifetime = 8

// expiryOf returns that of something with the lifetime, of which there remains so much.
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

// pendingUntil returns the expiry of a pending transaction, by the time that Redis told.
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
	agent        uuid.UUID // that acts; uuid.Nil for an API key
	resource     resource  // of which it is one; noResource for none that is counted here
	lifetime     time.Duration
	expires      time.Time // of a transaction, as Redis told; zero when its answer was lost
	bytes        int64     // with a fixed part for each agent
	retained     time.Duration
	text         int64 // of an agent: the bytes that stay until it is deleted
	events       int64 // bytes
	always       bool  // it is counted, and never refused
	unpaced      bool  // no rate is for it
}

// held is what the organization holds more of then.
func (d demand) held() quantities {
	var a quantities
	if d.resource != noResource {
		a[d.resource] = 1
	}
	a[bytesHeld] = d.bytes
	return a
}

// addTo adds what Redis is to learn once it exists.
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

// account returns that of an organization whose credential was good.
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

// used is all that the organization holds, with what is about to be. The caller holds the lock.
func (a *account) used() quantities {
	sum := a.known
	sum.add(a.sending)
	sum.add(a.unsent)
	sum.add(a.reserved)
	return sum
}

// reservation is what an operation was allowed to create.
type reservation struct {
	u       *usage
	account *account // nil when nothing was reserved, or for whom is to be seen from the answer
	demand  demand
}

// reserve refuses what goes beyond a quota, a rate or the fair share; the caller counts that. Who gets a reservation settles it. Errors:
// *QuotaError, *RateError.
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

// refuses says why the account cannot take the demand. The caller holds the lock.
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
	if used[bytesHeld] > most-d.bytes {
		return &QuotaError{resourceNames[bytesHeld], used[bytesHeld], most}
	}
	return nil
}

// checkRate looks whether there is something left. It is taken when the operation has succeeded: only then is it proven
// who asked.
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

// spend takes one from a bucket, which operations that were under way together may leave in debt.
func spend(bucket *rate.Limiter, now time.Time) {
	if bucket != nil {
		bucket.ReserveN(now, 1)
	}
}

// finish counts what was created, unless the operation has certainly created nothing.
func (r reservation) finish(err error, replayed bool) {
	if r.account == nil && err == nil && r.u != nil && r.demand.organization != uuid.Nil { // the credential was good
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

// finishFor is finish when only the answer has told whose it is.
func (r reservation) finishFor(organization uuid.UUID, err error) {
	if r.account == nil && err == nil && r.u != nil {
		r = r.countFor(organization)
	}
	r.finish(err, false)
}

// countFor returns the reservation in the account of an organization whose credential was good.
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
	if u.pressure.wrote(d.bytes) {
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

// organizationOf returns whose the agent is, or uuid.Nil if this instance has not seen it yet.
func (u *usage) organizationOf(agent uuid.UUID) uuid.UUID {
	if share, known := u.agents.Get(agent); known {
		return share.organization
	}
	return uuid.Nil
}

// note counts changes that nothing refuses.
func (u *usage) note(organization uuid.UUID, change func(*changes, *quantities)) {
	a := u.account(organization)
	a.mu.Lock()
	change(&a.changes, &a.unsent)
	a.mu.Unlock()
	u.syncing.enqueue(a)
}

// quota returns an organization's quota as scripts take it, ” for unbounded.
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

package kernel

import (
	"errors"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
	"remit/internal/redisclient"
)

// usage is what this instance knows of organizations' usage. An operation reserves what it is about to create, and finishes
// the reservation with its result. The store sends what was created to Redis about twice a second (usagesync.go) and until
// then counts it here. With one instance quotas are exact; several may together exceed them by what they create meanwhile.
type usage struct {
	defaults Quantities
	rates    Rates
	Now      func() time.Time

	Accounts *lru.Cache[uuid.UUID, *account]
	// agents are those that have exchanged their secrets: only Redis's reply names their organization.
	agents *lru.Cache[uuid.UUID, *agentShare]

	pressure pressure
	Syncing  syncing
}

const (
	maxAccounts    = 1 << 13 // organizations
	maxAgentShares = 1 << 16
	// BurstTime is the size of a burst after a pause, in seconds of the rate.
	BurstTime = 10
	// knownFor is how long an account is valid without a sync, while only other instances change it.
	knownFor = time.Second
)

// Rates are how many objects an organization and an agent may create per second and instance; 0 is unbounded.
type Rates struct{ Organization, Agent int }

func newUsage(cfg Config) *usage {
	return &usage{
		defaults: DefaultQuotas.over(cfg.Quotas), rates: cfg.Rates, Now: time.Now,
		Accounts: newCache[uuid.UUID, *account](maxAccounts), agents: newCache[uuid.UUID, *agentShare](maxAgentShares),
	}
}

// agentShare is an agent's organization and its rate.
type agentShare struct {
	organization uuid.UUID
	bucket       *rate.Limiter // nil for unbounded
}

// account is the usage of one organization.
type account struct {
	organization uuid.UUID

	Mu     sync.Mutex
	Known  Quantities // from Redis at the last sync
	quotas Quantities // 0 is unbounded
	synced time.Time
	// Not in known: sending is on its way to Redis, unsent waits for the next sync, reserved is by operations in progress.
	sending, Unsent, Reserved Quantities
	changes                   Changes
	bucket                    *rate.Limiter // nil for unbounded
	queued                    bool          // for syncing
	prunedAt                  time.Time     // when its open sessions were last pruned because they reached the quota
	published                 int64         // bytes in the index of holdings, or unpublished
	publishedAt               time.Time

	turn sync.Mutex // of syncing
}

// unpublished means that this instance has not published yet, and another one may have.
const unpublished = -1

// Changes are what the next sync sends to Redis. Expiring amounts are by class and time of expiry.
type Changes struct {
	AgentBytes, EventBytes int64
	expiring               map[Expiry]int64
}

// Expiry is when something expires, to an eighth of its lifetime.
type Expiry struct {
	Class     byte          // see note_usage.lua
	Width     int64         // of its bucket, in minutes
	Remaining time.Duration // at its creation, rounded to a quarter of the width; for 't' the time since 1970
}

// bucketsOfLifetime is how many buckets divide a lifetime, at most.
const bucketsOfLifetime = 8

// ExpiryOf returns the expiry of something with this lifetime and remaining time.
func ExpiryOf(class byte, lifetime, remaining time.Duration) Expiry {
	width := widthOf(lifetime)
	return Expiry{class, int64(width / time.Minute), remaining.Round(width / 4)}
}

func widthOf(lifetime time.Duration) time.Duration {
	width := time.Minute
	for width*bucketsOfLifetime < lifetime {
		width *= 2
	}
	return width
}

// PendingUntil returns the expiry of a pending transaction from its time of expiry by Redis's clock.
func PendingUntil(lifetime time.Duration, expires time.Time) Expiry {
	width := widthOf(lifetime)
	return Expiry{'t', int64(width / time.Minute), time.Duration(expires.UnixMilli()) * time.Millisecond / width * width}
}

// Expire adds an amount that expires then.
func (c *Changes) Expire(e Expiry, amount int64) {
	if c.expiring == nil {
		c.expiring = map[Expiry]int64{}
	}
	c.expiring[e] += amount
}

func (c *Changes) add(other Changes) {
	c.AgentBytes += other.AgentBytes
	c.EventBytes += other.EventBytes
	for e, amount := range other.expiring {
		c.Expire(e, amount)
	}
}

// Demand is what an operation is about to create.
type Demand struct {
	Organization uuid.UUID
	Agent        uuid.UUID // the caller; uuid.Nil for an API key
	Resource     Resource  // the kind of object; NoResource for one that is not counted here
	Lifetime     time.Duration
	Expires      time.Time // of a transaction, by Redis's clock; zero when the reply was lost
	Bytes        int64     // including a fixed part for each agent
	Retained     time.Duration
	Text         int64 // of an agent: the bytes that stay until it is deleted
	counted      int64 // bytes that the operation's script counts (include/count_bytes.lua); below 0 those that it frees
	Events       int64 // bytes
	Always       bool  // it is counted and never refused
	Unpaced      bool  // no rate applies to it
}

// held is the usage that the demand adds.
func (d Demand) held() Quantities {
	var a Quantities
	if d.Resource != NoResource {
		a[d.Resource] = 1
	}
	a[BytesHeld] = d.Bytes + d.counted
	return a
}

// addTo adds the demand to the changes that the next sync sends.
func (d Demand) addTo(c *Changes) {
	c.AgentBytes += d.Text
	c.EventBytes += d.Events
	switch {
	case d.Resource == PendingHeld && !d.Expires.IsZero():
		c.Expire(PendingUntil(d.Lifetime, d.Expires), 1)
	case d.Resource == FamiliesHeld || d.Resource == keysHeld:
		c.Expire(ExpiryOf(classOf[d.Resource], d.Lifetime, d.Lifetime), 1)
	}
	if d.Retained > 0 {
		c.Expire(ExpiryOf('b', d.Retained, d.Retained), d.Bytes)
	}
}

var classOf = map[Resource]byte{FamiliesHeld: 'f', keysHeld: 'i'}

// Account returns the account of an organization. Call it only after a credential of the organization was verified.
func (u *usage) Account(organization uuid.UUID) *account {
	if a, known := u.Accounts.Get(organization); known {
		return a
	}
	fresh := &account{organization: organization, quotas: u.defaults, bucket: bucketOf(u.rates.Organization), published: unpublished}
	if a, known, _ := u.Accounts.PeekOrAdd(organization, fresh); known {
		return a
	}
	return fresh
}

func bucketOf(perSecond int) *rate.Limiter {
	if perSecond == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(perSecond), perSecond*BurstTime)
}

// Used is the organization's usage including reservations. The caller must hold the lock.
func (a *account) Used() Quantities {
	sum := a.Known
	sum.add(a.sending)
	sum.add(a.Unsent)
	sum.add(a.Reserved)
	return sum
}

// Reservation is what an operation may create.
type Reservation struct {
	Usage   *usage
	account *account // nil if nothing is reserved, or until the reply names the organization
	Demand  Demand
}

// Reserve refuses a demand beyond a quota, a rate or the fair share; the caller counts the refusal. The caller must finish the
// reservation. Errors: *QuotaError, *RateError.
func (u *usage) Reserve(d Demand) (Reservation, error) {
	now := u.Now()
	if err := u.checkRate(d, now); err != nil {
		return Reservation{}, err
	}
	if d.Organization == uuid.Nil {
		return Reservation{Usage: u, Demand: d}, nil
	}
	a := u.Account(d.Organization)
	a.Mu.Lock()
	stale, err := now.Sub(a.synced) > knownFor, a.refuses(d, u.pressure.level(now))
	if err == nil {
		a.Reserved.add(d.held())
	}
	a.Mu.Unlock()
	if stale || err != nil {
		u.Syncing.enqueue(a)
	}
	if err != nil {
		return Reservation{}, err
	}
	return Reservation{u, a, d}, nil
}

// refuses returns the reason why the account cannot take the demand, or nil. The caller must hold the lock.
func (a *account) refuses(d Demand, fairShare int64) error {
	if d.Always {
		return nil
	}
	used := a.Used()
	if r := d.Resource; r != NoResource && a.quotas[r] > 0 && used[r]+1 > a.quotas[r] {
		return &QuotaError{ResourceNames[r], used[r], a.quotas[r]}
	}
	most := fairShare
	if quota := a.quotas[BytesHeld]; quota > 0 {
		most = min(most, quota)
	}
	if used[BytesHeld] > most-d.Bytes-d.counted {
		return &QuotaError{ResourceNames[BytesHeld], used[BytesHeld], most}
	}
	return nil
}

// checkRate checks that the rates have room. finish spends from them after the operation has succeeded, because only success
// proves who the caller is.
func (u *usage) checkRate(d Demand, now time.Time) error {
	if d.Always || d.Unpaced {
		return nil
	}
	if d.Agent != uuid.Nil {
		if share, known := u.agents.Get(d.Agent); known {
			if err := wait(share.bucket, AgentRate, now); err != nil {
				return err
			}
		}
	}
	if d.Organization == uuid.Nil {
		return nil
	}
	return wait(u.Account(d.Organization).bucket, OrganizationRate, now)
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
	OrganizationRate = "organization_rate"
	AgentRate        = "agent_rate"
)

// spend takes one token from a bucket. Concurrent operations may leave it in debt.
func spend(bucket *rate.Limiter, now time.Time) {
	if bucket != nil {
		bucket.ReserveN(now, 1)
	}
}

// Resize changes the memory of the reservation to what the operation has taken, and how long it stays.
func (r *Reservation) Resize(bytes int64, retained time.Duration) {
	if r.account != nil {
		r.account.Mu.Lock()
		r.account.Reserved[BytesHeld] += bytes - r.Demand.Bytes
		r.account.Mu.Unlock()
	}
	r.Demand.Bytes, r.Demand.Retained = bytes, retained
}

// Finish releases the reservation, and counts the demand unless the operation has certainly created nothing.
func (r Reservation) Finish(err error, replayed bool) {
	a := r.account
	if a == nil && err == nil && r.Usage != nil && r.Demand.Organization != uuid.Nil { // nothing was reserved, and the credential is valid
		a = r.Usage.Account(r.Demand.Organization)
	}
	if a == nil {
		return
	}
	created := (err == nil || errors.Is(err, redisclient.ErrOutcomeUnknown)) && !replayed
	a.Mu.Lock()
	held := r.Demand.held()
	for i := range held {
		if r.account != nil {
			a.Reserved[i] -= held[i]
		}
	}
	if created {
		a.Unsent.add(held)
		r.Demand.addTo(&a.changes)
	}
	a.Mu.Unlock()
	if created {
		r.Usage.created(a, r.Demand)
	}
}

// FinishFor is finish for an operation whose reply names the organization.
func (r Reservation) FinishFor(organization uuid.UUID, err error) {
	r.Demand.Organization = organization
	r.Finish(err, false)
}

func (u *usage) created(a *account, d Demand) {
	now := u.Now()
	if !d.Always && !d.Unpaced {
		spend(a.bucket, now)
		if d.Agent != uuid.Nil {
			spend(u.shareOf(d.Agent, a.organization).bucket, now)
		}
	}
	u.Syncing.enqueue(a)
	if u.pressure.wrote(d.Bytes + d.counted) {
		u.Syncing.hurry()
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

// OrganizationOf returns the agent's organization, or uuid.Nil before its first exchange at this instance.
func (u *usage) OrganizationOf(agent uuid.UUID) uuid.UUID {
	if share, known := u.agents.Get(agent); known {
		return share.organization
	}
	return uuid.Nil
}

// Note counts changes that no quota refuses.
func (u *usage) Note(organization uuid.UUID, change func(*Changes, *Quantities)) {
	a := u.Account(organization)
	a.Mu.Lock()
	change(&a.changes, &a.Unsent)
	a.Mu.Unlock()
	u.Syncing.enqueue(a)
}

// Quota returns an organization's quota as scripts take it, "" for unbounded.
func (u *usage) Quota(organization uuid.UUID, r Resource) string {
	a, known := u.Accounts.Get(organization)
	quotas := u.defaults
	if known {
		a.Mu.Lock()
		quotas = a.quotas
		a.Mu.Unlock()
	}
	if quotas[r] == 0 {
		return ""
	}
	return strconv.FormatInt(quotas[r], 10)
}

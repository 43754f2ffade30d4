package fleet

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"remit/client"
	"remit/money"
)

// fleet is the agents of one run, with their sessions and measurements.
type fleet struct {
	cfg      config
	wire     *transport
	remit    *client.Client
	stats    *stats
	audit    *audit
	org      *client.Organization
	agents   []*agent
	sessions []*session
	started  startedSessions
	shown    shown
	unsent   int64        // actions that were due, but never sent
	ownType  string       // of the charges of a given session
	local    atomic.Int64 // actions that a lease decided without a request

	// Only in the tree scenario, which has no other sessions:
	apiKey   string
	trees    []*tree // by slot; a slot may have had others before
	grove    grove   // guards them
	budget   money.MicroUSD
	budgetMu sync.Mutex   // guards the budget, and is held while it is set
	treeKeys atomic.Int64 // idempotency keys used

	brokenOff [operations]atomic.Int64 // exchanges without an answer
}

// newFleet returns a fleet without agents. Without keys the SDK sends each request once. With keys it may repeat a request
// whose answer was lost, and the service must execute it once.
func newFleet(cfg config) (*fleet, error) {
	wire := newTransport(cfg.addr, 2*maxInFlight+refreshers+callers) // twice, for a storm
	options := client.Options{
		HTTPClient:        &http.Client{Transport: wire},
		NoIdempotencyKeys: !cfg.keys,
		MaxAttempts:       1,
	}
	if cfg.keys {
		options.MaxAttempts = cfg.attempts()
	}
	remit, err := client.New(cfg.addr, options)
	slots := map[bool]int{cfg.scenario == trees: cfg.fleetSessions()}
	return &fleet{
		cfg:      cfg,
		wire:     wire,
		remit:    remit,
		stats:    newStats(),
		audit:    &audit{},
		agents:   make([]*agent, cfg.agents),
		sessions: make([]*session, slots[false]),
		started:  startedSessions{open: make(chan *session, maxStarted)},
		ownType:  newOwnType(),
		trees:    make([]*tree, slots[true]),
	}, err
}

// setUp creates the organization, its agents, their tokens and their sessions. It returns the first refusal, or the first
// failure to get an answer in a few attempts, because a run needs the whole fleet.
func (f *fleet) setUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setUpPatience)
	defer cancel()
	if f.cfg.session != "" {
		return f.setUpGiven(ctx)
	}
	var made client.OrganizationInfo
	t := f.persist(ctx, opOrganization, time.Now(), func(ctx context.Context) (err error) {
		made, err = f.remit.CreateOrganization(ctx, client.OrganizationParams{Name: "loadtest"})
		return err
	})
	if t.err != nil {
		return t.err
	}
	f.org, f.apiKey = f.remit.Organization(string(made.APIKey)), string(made.APIKey)
	if err := each(ctx, len(f.agents), f.createAgent); err != nil {
		return err
	}
	if err := each(ctx, len(f.agents), f.logIn); err != nil {
		return err
	}
	if f.cfg.scenario == trees {
		if err := f.setBudget(ctx); err != nil {
			return err
		}
		return each(ctx, len(f.trees), f.plantFirst)
	}
	return each(ctx, len(f.sessions), f.open)
}

// createAgent creates agent i.
func (f *fleet) createAgent(ctx context.Context, i int) error {
	scopes := []string{"read", "write", "transactions:rollback"}
	if f.cfg.breaking {
		scopes = append(scopes, "sessions:delegate")
	}
	var made client.AgentInfo
	t := f.persist(ctx, opAgent, time.Now(), func(ctx context.Context) (err error) {
		made, err = f.org.CreateAgent(ctx, client.AgentParams{Name: fmt.Sprintf("agent %d", i), Scopes: scopes})
		return err
	})
	f.agents[i] = &agent{sdk: f.remit.Agent(made.ID, string(made.Secret)), secret: made.Secret}
	return t.err
}

// logIn gets the first tokens of agent i.
func (f *fleet) logIn(ctx context.Context, i int) error {
	a := f.agents[i]
	t := f.persist(ctx, opToken, time.Now(), a.sdk.Refresh)
	a.take(decoded[tokenPair](t.reply().body))
	if t.err == nil && !a.tokens.usable() {
		return fmt.Errorf("token pair of agent %s is incomplete", a.sdk.ID())
	}
	return t.err
}

// open creates session i. Consecutive sessions belong to different agents, so that an agent has both roomy and tight ones.
func (f *fleet) open(ctx context.Context, i int) error {
	a, may := f.agents[i%len(f.agents)], nthLimits(i, f.cfg)
	var made client.SessionInfo
	t := f.persist(ctx, opSession, time.Now(), func(ctx context.Context) (err error) {
		made, err = f.org.CreateSession(ctx, client.SessionParams{
			AgentID: a.sdk.ID(), MaxActions: may.actions, MaxValue: new(may.value),
			ExpiresIn: sessionLifetime(f.cfg), MaxLease: leaseTime,
		})
		return err
	})
	f.sessions[i] = &session{sdk: a.sdk.Session(made.ID), agent: a, limits: may}
	if t.err == nil && f.cfg.scenario == leased {
		return f.openLease(ctx, f.sessions[i])
	}
	return t.err
}

// call makes one SDK call, records its latency since it was due, and checks it.
func (f *fleet) call(ctx context.Context, op operation, due time.Time, do func(context.Context) error) *recorder {
	ctx, t := withRecorder(ctx, op)
	t.err = do(ctx)
	t.done = time.Now()
	f.stats.record(op, due, t.done, t.reply())
	if f.cfg.session != "" {
		f.audit.add(checkSDK(t)) // its agent may have been suspended or revoked, so its tokens are not checked
		return t
	}
	f.audit.add(checkRecorder(t))
	if f.cfg.breaking {
		f.noteBroken(t)
	}
	f.renewed(t)
	return t
}

// renewed records and checks the token requests that the SDK made for another call.
func (f *fleet) renewed(t *recorder) {
	for _, e := range t.renewals() {
		if e.path == tokenPath {
			f.stats.record(opToken, e.began, e.done, e.reply)
			continue
		}
		f.stats.record(opRefresh, e.began, e.done, e.reply)
		f.audit.add(checkRefresh(refreshFact{
			agent: t.op.String(), presented: tokenPair{RefreshToken: decoded[tokenPair](e.sent).RefreshToken}, reply: e.reply,
		}))
	}
}

// persist repeats a call until there is an answer, a few times at most. Use it for idempotent calls, and to create what is
// unknown to the fleet until the answer arrives.
func (f *fleet) persist(ctx context.Context, op operation, due time.Time, do func(context.Context) error) *recorder {
	t := f.call(ctx, op, due, do)
	for attempt := 1; attempt < f.cfg.attempts() && t.reply().outcome() == unknown && ctx.Err() == nil; attempt++ {
		sleepOrDone(ctx, betweenAttempt)
		t = f.call(ctx, op, time.Now(), do)
		t.repeats = true
	}
	return t
}

// each runs do for 0 to n-1 concurrently. It stops at the first error and returns it.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	drive(ctx, callers, newPacer(int64(n), 0, 0), func(i int64, _ time.Time) {
		if err := do(ctx, int(i)); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

// agent is one simulated agent. The SDK manages its tokens; the copies here are for the checks.
type agent struct {
	sdk    *client.Agent
	secret client.Credential

	mu        sync.Mutex // held over a refresh
	tokens    tokenPair  // the newest that were sent or received
	refreshes int        // how many succeeded
	doubt     time.Time  // when the first refresh of these tokens got no answer; zero: none
}

// take stores a new token pair.
func (a *agent) take(p tokenPair) { a.tokens, a.doubt = p, time.Time{} }

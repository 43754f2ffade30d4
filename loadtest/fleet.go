package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"remit/client"
	"remit/money"
)

// fleet is the agents of one run and what is known of them.
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
	unsent   int64 // actions that were due but never sent
}

// newFleet has everything but its agents. Without keys the SDK sends each request once; with keys it may repeat one
// whose answer was lost, which the service must count once.
func newFleet(cfg config) (*fleet, error) {
	wire := newTransport(cfg.addr, 2*maxInFlight+refreshers+callers) // twice, for a storm
	options := client.Options{
		HTTPClient:        &http.Client{Transport: wire},
		NoIdempotencyKeys: !cfg.keys,
		MaxAttempts:       1,
	}
	if cfg.keys {
		options.MaxAttempts = attempts
	}
	remit, err := client.New(cfg.addr, options)
	return &fleet{
		cfg:      cfg,
		wire:     wire,
		remit:    remit,
		stats:    newStats(),
		audit:    &audit{},
		agents:   make([]*agent, cfg.agents),
		sessions: make([]*session, cfg.fleetSessions()),
	}, err
}

// setUp makes the organization, its agents, their tokens and their sessions. Its error is the first refusal, or
// failure to get an answer in a few attempts: without the whole fleet there is no run.
func (f *fleet) setUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setUpPatience)
	defer cancel()
	var made client.OrganizationInfo
	t := f.persist(ctx, opOrganization, time.Now(), func(ctx context.Context) (err error) {
		made, err = f.remit.CreateOrganization(ctx, client.OrganizationParams{Name: "loadtest"})
		return err
	})
	if t.err != nil {
		return t.err
	}
	f.org = f.remit.Organization(string(made.APIKey))
	if err := each(ctx, len(f.agents), f.createAgent); err != nil {
		return err
	}
	if err := each(ctx, len(f.agents), f.logIn); err != nil {
		return err
	}
	return each(ctx, len(f.sessions), f.open)
}

// createAgent creates agent i.
func (f *fleet) createAgent(ctx context.Context, i int) error {
	var made client.AgentInfo
	t := f.persist(ctx, opAgent, time.Now(), func(ctx context.Context) (err error) {
		made, err = f.org.CreateAgent(ctx, client.AgentParams{
			Name: fmt.Sprintf("agent %d", i), Scopes: []string{"read", "write", "transactions:rollback"},
		})
		return err
	})
	f.agents[i] = &agent{sdk: f.remit.Agent(made.ID, string(made.Secret)), secret: made.Secret}
	return t.err
}

// logIn lets agent i get its first tokens.
func (f *fleet) logIn(ctx context.Context, i int) error {
	a := f.agents[i]
	t := f.persist(ctx, opToken, time.Now(), a.sdk.Refresh)
	a.take(readTokens(t.reply()))
	if t.err == nil && !a.tokens.usable() {
		return fmt.Errorf("token pair of agent %s is incomplete", a.sdk.ID())
	}
	return t.err
}

// open creates session i. Consecutive sessions belong to different agents, so that one agent has both roomy and tight
// ones.
func (f *fleet) open(ctx context.Context, i int) error {
	a, may := f.agents[i%len(f.agents)], nthLimits(i, f.cfg)
	var made client.SessionInfo
	t := f.persist(ctx, opSession, time.Now(), func(ctx context.Context) (err error) {
		made, err = f.org.CreateSession(ctx, client.SessionParams{
			AgentID: a.sdk.ID(), MaxActions: may.actions, MaxValue: new(money.MicroUSD(may.value)),
			ExpiresIn: sessionLifetime(f.cfg),
		})
		return err
	})
	f.sessions[i] = &session{sdk: a.sdk.Session(made.ID), agent: a, limits: may}
	return t.err
}

// call lets the SDK make one call and enters how long it took since it was due.
func (f *fleet) call(ctx context.Context, op operation, due time.Time, do func(context.Context) error) *recorder {
	ctx, t := withRecorder(ctx, op)
	t.err = do(ctx)
	t.done = time.Now()
	f.stats.record(op, due, t.done, t.reply())
	f.audit.add(checkRecorder(t))
	f.renewed(t)
	return t
}

// renewed enters and checks what a call that was about something else did to get a token first.
func (f *fleet) renewed(t *recorder) {
	for _, e := range t.renewals() {
		if e.path == tokenPath {
			f.stats.record(opToken, e.began, e.done, e.reply)
			continue
		}
		f.stats.record(opRefresh, e.began, e.done, e.reply)
		f.audit.add(checkRefresh(refreshFact{
			agent: t.op.String(), presented: tokenPair{RefreshToken: presentedIn(e.sent)}, reply: e.reply,
		}))
	}
}

// persist asks until there is an answer, a few times at most. Only for what may be requested twice, and for creating what
// nobody knows of until its answer arrives.
func (f *fleet) persist(ctx context.Context, op operation, due time.Time, do func(context.Context) error) *recorder {
	t := f.call(ctx, op, due, do)
	for attempt := 1; attempt < attempts && t.reply().outcome() == unknown && ctx.Err() == nil; attempt++ {
		sleepOrDone(ctx, betweenAttempt)
		t = f.call(ctx, op, time.Now(), do)
	}
	return t
}

// each runs do for 0 to n-1, several at once, and stops at the first error, which it returns.
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

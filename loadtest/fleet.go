package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	setUpPatience  = 5 * time.Minute
	callers        = 32 // requests under way at once, outside the run itself
	attempts       = 3  // for what may be asked again
	betweenAttempt = 250 * time.Millisecond
)

// fleet is the agents of one run and what is known of them.
type fleet struct {
	cfg      config
	api      *client
	stats    *stats
	audit    *audit
	org      credential
	agents   []*agent
	sessions []*session
	unsent   int64 // actions that were due but never sent
}

// agent is one simulated agent.
type agent struct {
	id     string
	secret string

	mu        sync.Mutex // held over a refresh, as each refresh token is presented once
	tokens    tokenPair
	refreshes int       // that worked
	doubt     time.Time // since when these tokens may be spent, for want of an answer; zero: they are not

	auth atomic.Pointer[credential] // the newest access token
}

// hold takes a new token pair into use.
func (a *agent) hold(p tokenPair) {
	a.tokens, a.doubt = p, time.Time{}
	auth := bearer(p.AccessToken)
	a.auth.Store(&auth)
}

// session is one session of an agent, and the client's account of it.
type session struct {
	id     string
	agent  *agent
	limits limits
	ledger ledger
}

// newFleet has everything but its agents.
func newFleet(cfg config) *fleet {
	return &fleet{
		cfg:      cfg,
		api:      newClient(cfg.addr, maxInFlight+refreshers+callers),
		stats:    newStats(),
		audit:    &audit{},
		agents:   make([]*agent, cfg.agents),
		sessions: make([]*session, cfg.fleetSessions()),
	}
}

// setUp makes the organization, its agents, their tokens and their sessions. Its error is the first refusal, or
// failure to get an answer in a few attempts: without the whole fleet there is no run.
func (f *fleet) setUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setUpPatience)
	defer cancel()
	var org organization
	err := f.create(ctx, opOrganization, "/v1/organizations", credential{}, map[string]any{"name": "loadtest"}, &org)
	if err != nil {
		return err
	}
	f.org = apiKey(org.APIKey)
	if err := each(ctx, len(f.agents), f.enlist); err != nil {
		return err
	}
	if err := each(ctx, len(f.agents), f.logIn); err != nil {
		return err
	}
	return each(ctx, len(f.sessions), f.open)
}

// enlist creates agent i.
func (f *fleet) enlist(ctx context.Context, i int) error {
	var made agentIdentity
	err := f.create(ctx, opAgent, "/v1/agents", f.org,
		map[string]any{"name": fmt.Sprintf("agent %d", i), "scopes": []string{"read", "write"}}, &made)
	f.agents[i] = &agent{id: made.ID, secret: made.Secret}
	return err
}

// logIn exchanges the secret of agent i for its first tokens.
func (f *fleet) logIn(ctx context.Context, i int) error {
	var pair tokenPair
	a := f.agents[i]
	err := f.create(ctx, opToken, "/v1/auth/token", credential{},
		map[string]any{"agent_id": a.id, "secret": a.secret}, &pair)
	if err == nil && !pair.usable() {
		err = fmt.Errorf("token pair of agent %s is incomplete", a.id)
	}
	a.hold(pair)
	return err
}

// open creates session i. Consecutive sessions belong to different agents, so that one agent has both roomy and tight
// ones.
func (f *fleet) open(ctx context.Context, i int) error {
	a, may := f.agents[i%len(f.agents)], nthLimits(i, f.cfg)
	var made sessionAnswer
	err := f.create(ctx, opSession, "/sessions", f.org, map[string]any{
		"agent_id":           a.id,
		"max_actions":        may.actions,
		"max_value_usd":      json.Number(may.value.String()),
		"expires_in_seconds": int64(sessionLifetime(f.cfg) / time.Second),
	}, &made)
	f.sessions[i] = &session{id: made.ID, agent: a, limits: may}
	return err
}

// create posts members as JSON and decodes the answer into made. It asks again when there is no answer, for an object
// that nobody knows of does no harm.
func (f *fleet) create(ctx context.Context, op operation, path string, auth credential, members map[string]any, made any) error {
	body, err := json.Marshal(members)
	if err != nil {
		return err
	}
	r := f.persist(ctx, op, time.Now(), request{method: "POST", path: path, auth: auth, body: body})
	if r.outcome() != acknowledged {
		return fmt.Errorf("POST %s: %s", path, r)
	}
	if err := json.Unmarshal(r.body, made); err != nil {
		return fmt.Errorf("POST %s: unreadable answer: %w", path, err)
	}
	return nil
}

// call sends q once and enters how long it took since it was due.
func (f *fleet) call(op operation, due time.Time, q request) reply {
	r := f.api.call(q)
	f.stats.record(op, due, time.Now(), r.outcome())
	return r
}

// persist asks until there is an answer, a few times at most. Only for what may be asked twice.
func (f *fleet) persist(ctx context.Context, op operation, due time.Time, q request) reply {
	r := f.call(op, due, q)
	for attempt := 1; attempt < attempts && r.outcome() == unknown && ctx.Err() == nil; attempt++ {
		sleepOrDone(ctx, betweenAttempt)
		r = f.call(op, time.Now(), q)
	}
	return r
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

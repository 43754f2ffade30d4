package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"remit/client"
	"remit/money"
)

type sessionCommands struct {
	Create createSession `cmd:"" help:"Create a session for an agent."`
	List   listSessions  `cmd:"" help:"List sessions, newest first."`
	Show   showSession   `cmd:"" help:"Show a session."`
	Update updateSession `cmd:"" help:"Raise or lower a session's limits."`
	Usage  sessionUsage  `cmd:"" help:"Show what a session was used for, by action type."`
	Watch  watchSession  `cmd:"" help:"Show a session's budget live until it ends."`
	End    endSession    `cmd:"" help:"End a session and roll back its pending transactions."`

	Suspend  suspendSession `cmd:"" help:"Suspend a session and its descendants at once, until it is resumed."`
	Resume   resumeSession  `cmd:"" help:"Let a suspended session go on."`
	Requests listRequests   `cmd:"" help:"List an agent's requests for more than the session's limits allow, newest first."`
	Approve  approveRequest `cmd:"" help:"Approve a request for more, which raises the session's limits."`
	Deny     denyRequest    `cmd:"" help:"Deny a request for more."`
	Tree     treeOfSession  `cmd:"" help:"Show a session and its descendants as a tree."`

	Key sessionKeyCommands `cmd:"" help:"Session keys: create, list, delete."`
}

// limits are the limits of a session. Omitted ones are not sent; 0 is sent.
type limits struct {
	MaxActions *int64          `env:"-" placeholder:"N" help:"Maximum number of actions. A new session defaults to the service's setting, 1000 unless changed."`
	MaxValue   *money.MicroUSD `name:"max-value-usd" env:"-" placeholder:"USD" help:"Maximum value in USD, with up to 6 decimals. A new session defaults to the service's setting, 100 unless changed."`
	ExpiresIn  *duration       `env:"-" placeholder:"DURATION" help:"Lifetime from now, such as 90s, 2h or 30d, up to 30d. A new session defaults to the service's setting, 1h unless changed."`
	MaxLease   *duration       `env:"-" placeholder:"DURATION" help:"Longest time for which the agent may lease a part of the session and spend it without asking, up to 1h. 0s forbids leases, and is the default of a new session."`

	MaxValuePerAction *valueLimit `name:"max-value-usd-per-action" env:"-" placeholder:"USD" help:"Maximum value in USD of one charge or hold, or none, which is the default of a new session."`
	Thresholds        *percents   `env:"-" placeholder:"PERCENT,…" help:"Percents of the limits that the event budget.threshold tells, or none. A new session defaults to 80,100."`
	Enforcement       string      `env:"-" enum:",enforce,observe" default:"" help:"enforce, or observe: do what limits would refuse, and count it. A new session enforces."`
}

// check refuses values that the SDK would treat as omitted.
func (l limits) check() error {
	switch {
	case l.MaxActions != nil && *l.MaxActions < 1:
		return errors.New("--max-actions must be at least 1")
	case l.ExpiresIn != nil && time.Duration(*l.ExpiresIn) < time.Second:
		return errors.New("--expires-in must be at least 1s")
	case l.MaxLease != nil && (time.Duration(*l.MaxLease) < 0 || time.Duration(*l.MaxLease)%time.Second != 0):
		return errors.New("--max-lease must be whole seconds, or 0s")
	}
	return nil
}

func (l limits) sent() client.SessionLimits {
	return client.SessionLimits{
		MaxActions: orZero(l.MaxActions), MaxValue: l.MaxValue, ExpiresIn: time.Duration(orZero(l.ExpiresIn)),
		MaxLease: (*time.Duration)(l.MaxLease), MaxValuePerAction: (*money.MicroUSD)(l.MaxValuePerAction),
		Enforcement: l.Enforcement, Thresholds: orZero(l.Thresholds),
	}
}

type createSession struct {
	asOrganization
	Agent string `arg:"" help:"The agent's id."`
	limits
	MaxCommitted *money.MicroUSD `name:"max-committed-usd" env:"-" placeholder:"USD" help:"Maximum total value in USD that is charged and committed. Rollbacks do not lower the total. The default is no limit."`

	Parent   string   `env:"-" placeholder:"SESSION" help:"Make it a child of this session, a part of its budget. --max-actions and --max-value-usd left out are then what this session has left, if that is less."`
	Scopes   []string `env:"-" placeholder:"SCOPE,…" help:"Restrict the session to these scopes of the agent; repeatable."`
	Metadata metadata `env:"-" placeholder:"JSON" help:"Metadata: a JSON object."`
}

// Validate is called by the flag parser.
func (c *createSession) Validate() error { return c.check() }

// perAction is the limit of each action of a new session, nil when there is none.
func (l limits) perAction() *money.MicroUSD {
	if l.MaxValuePerAction == nil || *l.MaxValuePerAction == client.NoLimit {
		return nil
	}
	return (*money.MicroUSD)(l.MaxValuePerAction)
}

// Run creates the session.
func (c *createSession) Run() error {
	return callAndShow(c, factsOfSession, func(ctx context.Context, o *client.Organization) (client.SessionInfo, error) {
		l := c.sent()
		return o.CreateSession(ctx, client.SessionParams{
			AgentID: c.Agent, MaxActions: l.MaxActions, MaxValue: l.MaxValue, ExpiresIn: l.ExpiresIn, Scopes: c.Scopes,
			Metadata: c.Metadata.sent(), MaxCommitted: c.MaxCommitted, MaxLease: orZero(l.MaxLease), MaxValuePerAction: c.perAction(),
			Enforcement: l.Enforcement, Thresholds: l.Thresholds, ParentSessionID: c.Parent,
		})
	})
}

type updateSession struct {
	asOrganization
	ID string `arg:"" help:"The session's id."`
	limits
	AddActions int64          `env:"-" placeholder:"N" help:"Raise the maximum number of actions by N. Concurrent top-ups add up."`
	AddValue   money.MicroUSD `name:"add-value-usd" env:"-" placeholder:"USD" help:"Raise the maximum value by USD. Concurrent top-ups add up."`
}

// Validate is called by the flag parser.
func (c *updateSession) Validate() error {
	if c.limits == (limits{}) && c.AddActions == 0 && c.AddValue == 0 {
		return errors.New("set at least one of --max-actions, --max-value-usd, --expires-in, --max-lease, --max-value-usd-per-action, --thresholds, --enforcement, --add-actions and --add-value-usd")
	}
	if c.AddActions < 0 || c.AddValue < 0 {
		return errors.New("--add-actions and --add-value-usd cannot be negative")
	}
	return c.check()
}

// Run changes the session's limits.
func (c *updateSession) Run() error {
	return callAndShow(c, factsOfSession, func(ctx context.Context, o *client.Organization) (client.SessionInfo, error) {
		l := c.sent()
		l.AddActions, l.AddValue = c.AddActions, c.AddValue
		return o.UpdateSession(ctx, c.ID, l)
	})
}

type listSessions struct {
	asEither
	Of     string `arg:"" optional:"" name:"agent-id" help:"List only this agent's sessions."`
	Status string `env:"-" enum:"active,completed,expired,revoked,all" default:"all" help:"List only sessions in this status: active, completed, expired, revoked or all. The default is all."`
}

// Run lists the sessions.
func (c *listSessions) Run() error {
	return c.call(func(ctx context.Context, s sessions) error {
		found := s.list(ctx, client.SessionFilter{Status: unlessAll(c.Status), AgentID: c.Of})
		return list(c.Output, found, "ID\tAGENT\tSTATUS\tACTIONS\tVALUE\tEXPIRES", func(s client.SessionSummary) []string {
			return []string{
				s.ID, s.AgentID, s.Status, fmt.Sprintf("%d/%d", s.ActionCount, s.MaxActions),
				s.ValueUsed.String() + "/" + usd(s.MaxValue), moment(s.ExpiresAt),
			}
		})
	})
}

type showSession struct {
	asEither
	ID string `arg:"" help:"The session's id."`
}

// Run shows the session.
func (c *showSession) Run() error {
	return callAndShow(c, factsOfSession, func(ctx context.Context, s sessions) (client.SessionInfo, error) { return s.get(ctx, c.ID) })
}

type endSession struct{ showSession }

// Run ends the session and shows it.
func (c *endSession) Run() error {
	return callAndShow(c, factsOfSession, func(ctx context.Context, s sessions) (client.SessionInfo, error) {
		if err := s.end(ctx, c.ID); err != nil {
			return client.SessionInfo{}, err
		}
		info, err := s.get(ctx, c.ID)
		if err != nil {
			err = fmt.Errorf("the session has ended, but could not be read: %w", c.explain(err))
		}
		return info, err
	})
}

func factsOfSession(s client.SessionInfo) []Fact {
	committed, leases := "", ""
	if s.MaxLeaseSeconds > 0 {
		leases = "up to " + (time.Duration(s.MaxLeaseSeconds) * time.Second).String()
	}
	if s.ValueCommitted > s.ValueUsed { // some of it was rolled back
		committed = usd(s.ValueCommitted)
	}
	if s.MaxCommitted != nil {
		committed = s.ValueCommitted.String() + " of " + usd(*s.MaxCommitted)
	}
	facts := []Fact{
		{"ID", s.ID}, {"AGENT", s.AgentID}, {"PARENT", s.ParentSessionID}, {"STATUS", s.Status},
		{"SUSPENDED", moment(s.SuspendedAt)}, {"REASON", s.SuspensionReason},
		{"ACTIONS", fmt.Sprintf("%d of %d", s.ActionCount, s.MaxActions)},
		{"VALUE", s.ValueUsed.String() + " of " + usd(s.MaxValue)}, {"HELD", usdIfAny(s.ValueHeld)}, {"OVERAGE", usdIfAny(s.ValueOverage)}, {"COMMITTED", committed}, {"LEASES", leases},
		{"THRESHOLDS", shownPercents(s.Thresholds)},
		{"SCOPES", strings.Join(s.Scopes, ",")}, {"METADATA", shownMetadata(s.Metadata)},
		{"CREATED", moment(s.CreatedAt)}, {"EXPIRES", moment(s.ExpiresAt)}, {"ENDED", moment(s.EndedAt)},
	}
	return append(facts, factsOfRestrictions(s)...)
}

// factsOfRestrictions are what few sessions have.
func factsOfRestrictions(s client.SessionInfo) []Fact {
	delegated, perAction, observed := "", "", ""
	if s.ActionsDelegated > 0 || s.ValueDelegated > 0 {
		delegated = fmt.Sprintf("%d actions, %s", s.ActionsDelegated, usd(s.ValueDelegated))
	}
	if s.MaxValuePerAction != nil {
		perAction = usd(*s.MaxValuePerAction)
	}
	if s.Enforcement == "observe" || s.ObservedRefusals > 0 {
		observed = fmt.Sprintf("%d refusals observed (%s)", s.ObservedRefusals, s.Enforcement)
	}
	return []Fact{{"DELEGATED", delegated}, {"PER ACTION", perAction}, {"ENFORCEMENT", observed}}
}

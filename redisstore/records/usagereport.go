// Package records reads what is recorded: the trails of agents, the feeds of organizations, and what was used by day.
package records

import (
	"cmp"
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// UsageGroup is what the lines of a usage report tell apart.
type UsageGroup string

// The groups of a usage report.
const (
	ByDay        UsageGroup = "day"
	ByAgent      UsageGroup = "agent"
	BySession    UsageGroup = "session"
	ByActionType UsageGroup = "action_type"
)

// MaxUsageLines is how many lines a usage report has at most.
const MaxUsageLines = 10_000

// ErrTooManyUsageLines refuses a report of more than MaxUsageLines.
var ErrTooManyUsageLines = errors.New("the report has too many lines")

// UsageQuery selects what a report contains: days since 1970 in UTC, both included.
type UsageQuery struct {
	From, To int
	Agent    uuid.UUID // uuid.Nil for all
	Groups   []UsageGroup
}

// UsageLine is what was used by one group. A field of which the report does not tell groups apart is zero.
type UsageLine struct {
	Day         int // since 1970
	Agent       uuid.UUID
	Session     uuid.UUID // uuid.Nil for all that are no longer kept
	ActionType  string    // "" for none
	ActionCount int64     // below 0 when more was given back on these days than used
	Value       money.MicroUSD
}

// Reader reads what is recorded: trails of agents, feeds of organizations, and what was used.
type Reader struct {
	core          *kernel.Core
	subscriptions subscriptions
	reports       *reports
	// LongestReport ends the reports that take longer. It is MostReportTime.
	LongestReport time.Duration
	// fold folds the usage of the agents' sessions into the agents' days.
	fold func(ctx context.Context, f redisclient.Flow, organization uuid.UUID, agents []uuid.UUID) error
}

// NewReader returns a reader. fold folds the usage of the agents' sessions into the agents' days.
func NewReader(core *kernel.Core, fold func(context.Context, redisclient.Flow, uuid.UUID, []uuid.UUID) error) *Reader {
	return &Reader{core: core, reports: newReports(), LongestReport: MostReportTime, fold: fold}
}

// UsageReport returns what the organization used on these days. It counts what was used before the call. An instance makes one report of an
// organization at a time; others wait. Errors: ErrInvalidAPIKey, ErrUnknownAgent, ErrTooManyUsageLines, ErrManyReports, ErrReportTooLong.
func (s *Reader) UsageReport(ctx context.Context, key kernel.APIKey, q UsageQuery) ([]UsageLine, error) {
	if _, err := s.core.Authenticate(ctx, s.core.Proven.Flow(key), key); err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, s.LongestReport)
	defer cancel()
	release, err := s.reports.enter(within, key.Organization)
	if err != nil {
		return nil, err
	}
	defer release()
	lines, err := s.usageReport(within, redisclient.Flow{Owner: key.Organization}, key.Organization, q)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, ErrReportTooLong
	}
	return lines, err
}

func (s *Reader) usageReport(ctx context.Context, f redisclient.Flow, organization uuid.UUID, q UsageQuery) ([]UsageLine, error) {
	agents, err := s.core.AgentsWithUsage(ctx, f, organization, q.Agent)
	if err != nil {
		return nil, err
	}
	// The days of the agents then contain all that was used before.
	if err := s.fold(ctx, f, organization, agents); err != nil {
		return nil, err
	}
	report := usageReport{Reader: s, flow: f, query: q, lines: usageLines{}}
	if err := kernel.EachOf(ctx, len(agents), kernel.ReadersAtOnce, func(ctx context.Context, i int) error { return report.readAgent(ctx, agents[i]) }); err != nil {
		return nil, err
	}
	lines := report.lines.sorted()
	if len(lines) > MaxUsageLines {
		return nil, ErrTooManyUsageLines
	}
	return lines, nil
}

// usageReport is a report that is being made.
type usageReport struct {
	*Reader
	flow  redisclient.Flow
	query UsageQuery

	mu    sync.Mutex
	lines usageLines
}

// readAgent adds an agent's days. By session it adds those of each that is kept, and what is left for all the others.
func (r *usageReport) readAgent(ctx context.Context, agent uuid.UUID) error {
	days, err := r.record(ctx, r.core.Keys.UsageDays(agent), true)
	own := usageLines{}
	for attempt := 0; err == nil && attempt < readAttempts && slices.Contains(r.query.Groups, BySession); attempt++ {
		before := days
		if own, err = r.ofSessions(ctx, agent, before.First); err != nil {
			break
		}
		// What is folded meanwhile may be in the one and not in the other.
		if days, err = r.record(ctx, r.core.Keys.UsageDays(agent), true); reflect.DeepEqual(days, before) {
			break
		}
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for line, used := range own {
		r.lines.count(line, used)
		line.Session = uuid.Nil
		r.lines.count(line, kernel.UsedAmounts{}.Minus(used))
	}
	return r.lines.add(r.query, days, agent, uuid.Nil)
}

// readAttempts is how often a report reads an agent's sessions while they are being folded.
const readAttempts = 5

// ofSessions reads the lines of an agent's sessions, as far as the agent still has the days.
func (r *usageReport) ofSessions(ctx context.Context, agent uuid.UUID, first int) (usageLines, error) {
	own, alone := usageLines{}, sync.Mutex{}
	err := r.core.EachSession(ctx, r.flow, agent, func(sessions []uuid.UUID) error {
		return kernel.EachOf(ctx, len(sessions), kernel.ReadersAtOnce, func(ctx context.Context, i int) error {
			record, err := r.record(ctx, r.core.Keys.Session(agent, sessions[i]), false)
			if err != nil {
				return err
			}
			alone.Lock()
			defer alone.Unlock()
			return own.add(r.query, record.Within(first, math.MaxInt), agent, sessions[i])
		})
	})
	return own, err
}

func (r *usageReport) record(ctx context.Context, key string, agent bool) (u kernel.UsageRecord, err error) {
	err = r.core.InTurn(ctx, r.flow, func() error {
		fields, err := r.core.Texts(ctx, r.flow, "hgetall", key)
		if err == nil {
			u, err = kernel.ReadUsage(fields, agent)
		}
		return err
	})
	return u, err
}

// usageLines are lines by what they tell apart; the counts of a key are zero.
type usageLines map[UsageLine]kernel.UsedAmounts

// add adds the days of a record that the query selects.
func (l usageLines) add(q UsageQuery, u kernel.UsageRecord, agent, session uuid.UUID) error {
	for day, used := range u.Days {
		if day < q.From || day > q.To {
			continue
		}
		if !slices.Contains(q.Groups, ByActionType) {
			l.count(q.keyOf(UsageLine{Day: day, Agent: agent, Session: session}), used.All)
			continue
		}
		l.count(q.keyOf(UsageLine{Day: day, Agent: agent, Session: session}), used.Untyped())
		for index, typed := range used.ByIndex {
			l.count(q.keyOf(UsageLine{Day: day, Agent: agent, Session: session, ActionType: u.NameOf(index)}), typed)
		}
	}
	if len(l) > 2*MaxUsageLines { // some are the rest of an agent's sessions, and may come to nothing
		return ErrTooManyUsageLines
	}
	return nil
}

func (l usageLines) count(key UsageLine, used kernel.UsedAmounts) { l[key] = l[key].Plus(used) }

// keyOf returns the line of the groups that the report tells apart.
func (q UsageQuery) keyOf(line UsageLine) UsageLine {
	key := UsageLine{}
	for _, group := range q.Groups {
		switch group {
		case ByDay:
			key.Day = line.Day
		case ByAgent:
			key.Agent = line.Agent
		case BySession:
			key.Session = line.Session
		case ByActionType:
			key.ActionType = line.ActionType
		}
	}
	return key
}

// sorted returns the lines in the order of their groups, without those that come to nothing.
func (l usageLines) sorted() []UsageLine {
	lines := make([]UsageLine, 0, len(l))
	for line, used := range l {
		if used != (kernel.UsedAmounts{}) {
			line.ActionCount, line.Value = used.Actions, used.Value
			lines = append(lines, line)
		}
	}
	slices.SortFunc(lines, func(a, b UsageLine) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), slices.Compare(a.Agent[:], b.Agent[:]), slices.Compare(a.Session[:], b.Session[:]),
			cmp.Compare(a.ActionType, b.ActionType))
	})
	return lines
}

// UsageDay returns the day of a time, in days since 1970 in UTC.
func UsageDay(t time.Time) int { return int(t.Unix() / (24 * 60 * 60)) }

// ErrReportTooLong ends a report that takes longer than MostReportTime. What it has folded stays folded, so the next takes less.
var ErrReportTooLong = errors.New("the usage report takes too long")

// MostReportTime is how long a report may take, waiting included.
const MostReportTime = time.Minute

package redisstore

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
	"remit/money"
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

// UsageReport returns what the organization used on these days. It counts what was used before the call. An instance makes one report of an
// organization at a time; others wait. Errors: ErrInvalidAPIKey, ErrUnknownAgent, ErrTooManyUsageLines, ErrManyReports, ErrReportTooLong.
func (s *Store) UsageReport(ctx context.Context, key APIKey, q UsageQuery) ([]UsageLine, error) {
	if _, err := s.authenticate(ctx, s.proven.flow(key), key); err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, s.reports.longest)
	defer cancel()
	release, err := s.reports.enter(within, key.Organization)
	if err != nil {
		return nil, err
	}
	defer release()
	lines, err := s.usageReport(within, flow{Owner: key.Organization}, key.Organization, q)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, ErrReportTooLong
	}
	return lines, err
}

func (s *Store) usageReport(ctx context.Context, f flow, organization uuid.UUID, q UsageQuery) ([]UsageLine, error) {
	agents, err := s.agentsWithUsage(ctx, f, organization, q.Agent)
	if err != nil {
		return nil, err
	}
	// The days of the agents then contain all that was used before.
	if err := s.foldAgents(ctx, f, organization, agents); err != nil {
		return nil, err
	}
	report := usageReport{Store: s, flow: f, query: q, lines: usageLines{}}
	if err := someOf(ctx, len(agents), func(ctx context.Context, i int) error { return report.readAgent(ctx, agents[i]) }); err != nil {
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
	*Store
	flow  flow
	query UsageQuery

	mu    sync.Mutex
	lines usageLines
}

// readAgent adds an agent's days. By session it adds those of each that is kept, and what is left for all the others.
func (r *usageReport) readAgent(ctx context.Context, agent uuid.UUID) error {
	days, err := r.record(ctx, r.keys.usageDays(agent), true)
	own := usageLines{}
	for attempt := 0; err == nil && attempt < readAttempts && slices.Contains(r.query.Groups, BySession); attempt++ {
		before := days
		if own, err = r.ofSessions(ctx, agent, before.first); err != nil {
			break
		}
		// What is folded meanwhile may be in the one and not in the other.
		if days, err = r.record(ctx, r.keys.usageDays(agent), true); reflect.DeepEqual(days, before) {
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
		r.lines.count(line, usedAmounts{}.minus(used))
	}
	return r.lines.add(r.query, days, agent, uuid.Nil)
}

// readAttempts is how often a report reads an agent's sessions while they are being folded.
const readAttempts = 5

// ofSessions reads the lines of an agent's sessions, as far as the agent still has the days.
func (r *usageReport) ofSessions(ctx context.Context, agent uuid.UUID, first int) (usageLines, error) {
	own, alone := usageLines{}, sync.Mutex{}
	err := r.eachKept(ctx, r.flow, agent, func(ctx context.Context, sessions []place) error {
		return someOf(ctx, len(sessions), func(ctx context.Context, i int) error {
			record, err := r.record(ctx, r.keys.session(agent, sessions[i].session), false)
			if err != nil {
				return err
			}
			alone.Lock()
			defer alone.Unlock()
			return own.add(r.query, record.within(first, math.MaxInt), agent, sessions[i].session)
		})
	})
	return own, err
}

func (r *usageReport) record(ctx context.Context, key string, agent bool) (u usageRecord, err error) {
	err = r.inTurn(ctx, r.flow, func() error {
		fields, err := r.texts(ctx, r.flow, "hgetall", key)
		if err == nil {
			u, err = readUsage(fields, agent)
		}
		return err
	})
	return u, err
}

// usageLines are lines by what they tell apart; the counts of a key are zero.
type usageLines map[UsageLine]usedAmounts

// add adds the days of a record that the query selects.
func (l usageLines) add(q UsageQuery, u usageRecord, agent, session uuid.UUID) error {
	for day, used := range u.days {
		if day < q.From || day > q.To {
			continue
		}
		if !slices.Contains(q.Groups, ByActionType) {
			l.count(q.keyOf(UsageLine{Day: day, Agent: agent, Session: session}), used.all)
			continue
		}
		l.count(q.keyOf(UsageLine{Day: day, Agent: agent, Session: session}), used.untyped())
		for index, typed := range used.byIndex {
			l.count(q.keyOf(UsageLine{Day: day, Agent: agent, Session: session, ActionType: u.nameOf(index)}), typed)
		}
	}
	if len(l) > 2*MaxUsageLines { // some are the rest of an agent's sessions, and may come to nothing
		return ErrTooManyUsageLines
	}
	return nil
}

func (l usageLines) count(key UsageLine, used usedAmounts) { l[key] = l[key].plus(used) }

func (u usageRecord) nameOf(index string) string {
	if name := u.names[index]; name != "" {
		return name
	}
	return OtherTypes
}

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
		if used != (usedAmounts{}) {
			line.ActionCount, line.Value = used.actions, used.value
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

var (
	// ErrManyReports refuses a report while too many of the organization wait, or have waited too long.
	ErrManyReports = errors.New("other usage reports of your organization are being made")
	// ErrReportTooLong ends a report that takes longer than MostReportTime. What it has folded stays folded, so the next takes less.
	ErrReportTooLong = errors.New("the usage report takes too long")
)

const (
	// MostReportTime is how long a report may take, waiting included.
	MostReportTime = time.Minute
	// reportsWaiting is how many reports of an organization wait for the one under way, and reportWait how long.
	reportsWaiting = 8
	reportWait     = 20 * time.Second
)

// reports lets this instance make one report of an organization at a time. The others wait in their order.
type reports struct {
	longest, wait time.Duration

	mu    sync.Mutex
	queue map[uuid.UUID][]chan struct{} // of organizations with a report under way: those that wait
}

func newReports() *reports {
	return &reports{longest: MostReportTime, wait: reportWait, queue: map[uuid.UUID][]chan struct{}{}}
}

// enter waits until no other report of the organization is under way. Errors: ErrManyReports.
func (r *reports) enter(ctx context.Context, organization uuid.UUID) (release func(), err error) {
	release = func() { r.leave(organization) }
	turn, err := r.join(organization)
	if turn == nil {
		return release, err
	}
	timer := time.NewTimer(r.wait)
	defer timer.Stop()
	select {
	case <-turn:
		return release, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	if !r.quit(organization, turn) {
		release() // its turn came at that moment
	}
	return nil, ErrManyReports
}

// join begins the organization's report, or returns a place in its queue.
func (r *reports) join(organization uuid.UUID) (chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting, busy := r.queue[organization]
	switch {
	case !busy:
		r.queue[organization] = nil
		return nil, nil
	case len(waiting) >= reportsWaiting:
		return nil, ErrManyReports
	}
	turn := make(chan struct{}, 1)
	r.queue[organization] = append(waiting, turn)
	return turn, nil
}

// leave ends a report, and begins the one that waits longest.
func (r *reports) leave(organization uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if waiting := r.queue[organization]; len(waiting) > 0 {
		waiting[0] <- struct{}{}
		r.queue[organization] = waiting[1:]
		return
	}
	delete(r.queue, organization)
}

// quit gives a place in the queue up, and returns false if it is no longer in it.
func (r *reports) quit(organization uuid.UUID, turn chan struct{}) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, waiting := range r.queue[organization] {
		if waiting == turn {
			r.queue[organization] = append(r.queue[organization][:i:i], r.queue[organization][i+1:]...)
			return true
		}
	}
	return false
}

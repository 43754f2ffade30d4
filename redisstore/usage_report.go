package redisstore

import (
	"cmp"
	"context"
	"errors"
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

// UsageReport returns what the organization used on these days. It counts what was used before the call. Errors: ErrInvalidAPIKey,
// ErrUnknownAgent, ErrTooManyUsageLines.
func (s *Store) UsageReport(ctx context.Context, key APIKey, q UsageQuery) ([]UsageLine, error) {
	f := s.proven.flow(key)
	if _, err := s.authenticate(ctx, f, key); err != nil {
		return nil, err
	}
	agents, err := s.agentsWithUsage(ctx, f, key.Organization, q.Agent)
	if err != nil {
		return nil, err
	}
	release, err := s.client.Turn(ctx, f)
	if err != nil {
		return nil, err
	}
	defer release()
	report := usageReport{Store: s, flow: f, organization: key.Organization, query: q, lines: map[UsageLine]usedAmounts{}}
	if err := report.read(ctx, agents); err != nil {
		return nil, err
	}
	lines := report.sorted()
	if len(lines) > MaxUsageLines {
		return nil, ErrTooManyUsageLines
	}
	return lines, nil
}

// agentsWithUsage returns the agents of an organization, the deleted ones with them as long as their usage is kept; or the one asked for.
func (s *Store) agentsWithUsage(ctx context.Context, f flow, organization, only uuid.UUID) ([]uuid.UUID, error) {
	seen := map[uuid.UUID]bool{}
	for _, index := range []string{s.keys.organizationAgents(organization), s.keys.deletedAgents(organization)} {
		ids, err := s.membersOf(ctx, f, index, members{})
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			seen[id] = true
		}
	}
	if only != uuid.Nil && !seen[only] {
		return nil, ErrUnknownAgent
	}
	agents := make([]uuid.UUID, 0, len(seen))
	for id := range seen {
		if only == uuid.Nil || id == only {
			agents = append(agents, id)
		}
	}
	return agents, nil
}

// usageReport is a report that is being made. Its lines are by groups; the counts of a key are zero.
type usageReport struct {
	*Store
	flow         flow
	organization uuid.UUID
	query        UsageQuery

	mu    sync.Mutex
	lines map[UsageLine]usedAmounts
}

// read folds the sessions first, so that the days of the agents contain all that was used before.
func (r *usageReport) read(ctx context.Context, agents []uuid.UUID) error {
	sessions := make([][]place, len(agents))
	err := eachOf(ctx, len(agents), func(ctx context.Context, i int) (err error) {
		sessions[i], err = r.sessionsKept(ctx, r.flow, agents[i])
		return err
	})
	if err != nil {
		return err
	}
	if err := r.foldSessions(ctx, r.flow, r.organization, slices.Concat(sessions...)); err != nil {
		return err
	}
	return eachOf(ctx, len(agents), func(ctx context.Context, i int) error { return r.readAgent(ctx, agents[i], sessions[i]) })
}

// readAgent adds an agent's days. By session it adds those of each that is kept, and what is left for all the others.
func (r *usageReport) readAgent(ctx context.Context, agent uuid.UUID, sessions []place) error {
	days, err := r.record(ctx, r.keys.usageDays(agent), true)
	var own map[uuid.UUID]usageRecord
	for attempt := 0; err == nil && attempt < readAttempts && slices.Contains(r.query.Groups, BySession); attempt++ {
		before := days
		if own, err = r.ofSessions(ctx, sessions, before.first); err != nil {
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
	for session, used := range own {
		if err := cmp.Or(r.add(used, agent, session, 1), r.add(used, agent, uuid.Nil, -1)); err != nil {
			return err
		}
	}
	return r.add(days, agent, uuid.Nil, 1)
}

// readAttempts is how often a report reads an agent's sessions while they are being folded.
const readAttempts = 5

// ofSessions reads the days of sessions that the query selects and the agent still has.
func (r *usageReport) ofSessions(ctx context.Context, sessions []place, first int) (map[uuid.UUID]usageRecord, error) {
	own := map[uuid.UUID]usageRecord{}
	for _, p := range sessions {
		record, err := r.record(ctx, r.keys.session(p.agent, p.session), false)
		if err != nil {
			return nil, err
		}
		if record = record.within(max(first, r.query.From), r.query.To); len(record.days) > 0 {
			own[p.session] = record
		}
		if len(own) > 2*MaxUsageLines { // some may come to nothing
			return nil, ErrTooManyUsageLines
		}
	}
	return own, nil
}

func (r *usageReport) record(ctx context.Context, key string, agent bool) (usageRecord, error) {
	answer, err := r.client.Call(ctx, r.flow, reads, "hgetall", key)
	if err != nil {
		return usageRecord{}, err
	}
	fields, err := textsOf(answer)
	if err != nil {
		return usageRecord{}, err
	}
	return readUsage(fields, agent)
}

// add adds the days of a record that the query selects, or takes them off with the sign -1.
func (r *usageReport) add(u usageRecord, agent, session uuid.UUID, sign int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for day, used := range u.days {
		if day < r.query.From || day > r.query.To {
			continue
		}
		if !slices.Contains(r.query.Groups, ByActionType) {
			r.count(UsageLine{Day: day, Agent: agent, Session: session}, used.all, sign)
			continue
		}
		r.count(UsageLine{Day: day, Agent: agent, Session: session}, used.untyped(), sign)
		for index, typed := range used.byIndex {
			r.count(UsageLine{Day: day, Agent: agent, Session: session, ActionType: u.nameOf(index)}, typed, sign)
		}
	}
	if len(r.lines) > 2*MaxUsageLines { // some are the rest of an agent's sessions, and may come to nothing
		return ErrTooManyUsageLines
	}
	return nil
}

func (u usageRecord) nameOf(index string) string {
	if name := u.names[index]; name != "" {
		return name
	}
	return OtherTypes
}

// count adds to the line of the groups that the report tells apart.
func (r *usageReport) count(line UsageLine, used usedAmounts, sign int64) {
	key := UsageLine{}
	for _, group := range r.query.Groups {
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
	r.lines[key] = r.lines[key].plus(usedAmounts{sign * used.actions, money.MicroUSD(sign) * used.value})
}

// sorted returns the lines in the order of their groups, without those that come to nothing.
func (r *usageReport) sorted() []UsageLine {
	lines := make([]UsageLine, 0, len(r.lines))
	for line, used := range r.lines {
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

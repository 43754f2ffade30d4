package redisstore

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// Event is one entry of an agent's audit trail: a change, written by the script that made it.
type Event struct {
	ID   string // opaque; later events of the agent have greater ones
	Type string // as in docs/api.md: session.created, …
	Time time.Time
	// ByKey is true if an API key of the agent's organization made the request, false if the agent did. Expiry has no
	// caller, so its event names the first request that observed it.
	ByKey       bool
	Actor       uuid.UUID // the agent that made it with a delegated token; uuid.Nil for the agent itself
	Request     string    // id of the request
	Session     uuid.UUID
	Transaction uuid.UUID
	Family      uuid.UUID
	Lease       uuid.UUID
	Asked       uuid.UUID // a request for more
	Child       uuid.UUID // of the session
	Issuer      uuid.UUID // the trusted issuer whose token was exchanged
	Limit       string    // max_actions, max_value_usd or max_committed_usd, "" for none
	Enforcement string    // of a session, when it is set: enforce or observe; else ""
	Late        bool      // a commit after the transaction had expired
	Reason      string    // of a suspension or its end, "" for none
	Changed     []string  // of an agent: name, scopes, description, metadata, audiences, jwks, jwks_uri, dpop_required, limits
	// What changed; nil for what the event does not contain.
	MaxActions     *int64
	AddActions     *int64                    // asked for, or granted
	Actions        *int64                    // of a lease: granted, spent or expired
	OverageActions *int64                    // of a lease
	MaxLease       *int64                    // seconds
	Limits         *AgentLimits              // of the agent, after the change
	PreState       string                    // JSON object, of a transaction, in the feed of its organization; else ""
	Budget         string                    // whose threshold it is: session, agent_day or organization, else ""
	Threshold      int64                     // percent, 0 for none
	Thresholds     Thresholds                // of a session, when they are set
	Amounts        map[string]money.MicroUSD // by name: max_value, add_value, max_committed, max_per_action, held, leased, delegated, released, charged, overage
	Times          map[string]time.Time      // by name: expires, previous_until, spent
}

var listEvents = newScript("records/list_events", reads)

// Events returns at most limit of the agent's events after the one with the id, and whether there are more. after is ""
// to start at the oldest stored event, else an id that ValidEventID accepts. Errors: ErrInvalidAPIKey or ErrInvalidToken,
// ErrUnknownAgent, ErrOrganizationSuspended.
func (s *Store) Events(ctx context.Context, c Caller, agent uuid.UUID, after string, limit int) ([]Event, bool, error) {
	if c.Token != nil && s.Suspended(c.Token.Organization) { // an event stream may outlive the check of its request
		return nil, false, ErrOrganizationSuspended
	}
	act, err := s.actOnAgent(ctx, c, agent, nil)
	if err != nil {
		return nil, false, err
	}
	r, err := s.client.Run(ctx, act.flow, listEvents, []string{s.keys.agent(agent), s.keys.events(agent)},
		act.organization, act.family, after, limit+1)
	if act.family != "" {
		err = act.errorFor(err)
	}
	if err != nil {
		return nil, false, err
	}
	page := r.List(0)
	if page.Err != nil {
		return nil, false, page.Err
	}
	more := len(page.Values) > limit
	events := make([]Event, min(len(page.Values), limit))
	for i := range events {
		if events[i], err = readEvent(page.List(i)); err != nil {
			return nil, false, err
		}
	}
	return events, more, nil
}

// ValidEventID says whether an event can have this id. The greatest stream id is not valid: Redis refuses to read after it.
func ValidEventID(id string) bool {
	parsed, valid := parseEventID(id)
	return valid && parsed != eventID{math.MaxUint64, math.MaxUint64}
}

// eventID is the id of an entry of a Redis stream: ms since 1970 and a number among those of the same ms.
type eventID struct{ ms, sequence uint64 }

func parseEventID(id string) (eventID, bool) {
	ms, sequence, _ := strings.Cut(id, "-")
	high, errHigh := strconv.ParseUint(ms, 10, 64)
	low, errLow := strconv.ParseUint(sequence, 10, 64)
	return eventID{high, low}, errHigh == nil && errLow == nil && len(id) <= maxEventID
}

// maxEventID is the length of the longest id that is written without zeros before it; Redis refuses more than 127.
const maxEventID = len("18446744073709551615-18446744073709551615")

// isLater says whether the event with this id is later than the other. "" is earlier than every event.
func isLater(id, after string) bool {
	a, _ := parseEventID(id)
	b, _ := parseEventID(after)
	return a.ms > b.ms || a.ms == b.ms && a.sequence > b.sequence
}

// readEvent reads an event's id and its names and values.
func readEvent(entry *reply) (Event, error) {
	fields := entry.List(1)
	if fields.Err != nil {
		return Event{}, fields.Err
	}
	e := Event{ID: entry.Text(0)}
	for i := 0; i+1 < len(fields.Values); i += 2 {
		e.take(fields, fields.Text(i), i+1)
	}
	if entry.Err != nil {
		return Event{}, entry.Err
	}
	return e, fields.Err
}

// take reads the value at i, which has this name. It skips names that it does not know: a later version wrote them.
func (e *Event) take(r *reply, name string, i int) {
	switch name {
	case "type":
		e.Type = r.Text(i)
	case "at":
		e.Time = r.Time(i)
	case "actor":
		e.ByKey = r.Text(i) == actorKey
	case "request":
		id, actor, _ := strings.Cut(r.Text(i), " ") // see auditedRequest
		e.Request = id
		e.Actor, _ = uuid.Parse(actor)
	case "session":
		e.Session = idOrNilAt(r, i)
	case "transaction":
		e.Transaction = idOrNilAt(r, i)
	case "family":
		e.Family = idOrNilAt(r, i)
	case "lease":
		e.Lease = idOrNilAt(r, i)
	case "session_request":
		e.Asked = idOrNilAt(r, i)
	case "child":
		e.Child = idOrNilAt(r, i)
	case "issuer":
		e.Issuer = idOrNilAt(r, i)
	case "limit":
		e.Limit = r.Text(i)
	case "enforcement":
		e.Enforcement = r.Text(i)
	case "max_actions":
		e.MaxActions = new(r.Number(i))
	case "add_actions":
		e.AddActions = new(r.Number(i))
	case "actions":
		e.Actions = new(r.Number(i))
	case "overage_actions":
		e.OverageActions = new(r.Number(i))
	case "max_lease":
		e.MaxLease = new(r.Number(i))
	case "reason":
		e.Reason = r.Text(i)
	case "changed":
		e.Changed = strings.Fields(r.Text(i))
	case "late":
		e.Late = r.Text(i) != ""
	case "budget":
		e.Budget = r.Text(i)
	case "threshold":
		e.Threshold = r.Number(i)
	case "thresholds":
		e.Thresholds = percentsFrom(r, r.Text(i))
	case "limits":
		e.Limits = agentLimitsFrom(r, r.Text(i))
	case "max_value", "add_value", "max_committed", "max_per_action", "held", "leased", "delegated", "released", "charged", "overage":
		if e.Amounts == nil {
			e.Amounts = map[string]money.MicroUSD{}
		}
		e.Amounts[name] = moneyAt(r, i)
	case "expires", "previous_until", "spent":
		if e.Times == nil {
			e.Times = map[string]time.Time{}
		}
		e.Times[name] = r.Time(i)
	}
}

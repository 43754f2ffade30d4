package records

import (
	"context"
	"math"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

var ListEvents = kernel.NewScript("records/list_events", redisclient.Reads)

// Events returns at most limit of the agent's events after the one with the id, and whether there are more. after is ""
// to start at the oldest stored event, else an id that ValidEventID accepts. Errors: ErrInvalidAPIKey or ErrInvalidToken,
// ErrUnknownAgent, ErrOrganizationSuspended.
func (s *Reader) Events(ctx context.Context, c kernel.Caller, agent uuid.UUID, after string, limit int) ([]kernel.Event, bool, error) {
	if c.Token != nil && s.core.Suspended(c.Token.Organization) { // an event stream may outlive the check of its request
		return nil, false, kernel.ErrOrganizationSuspended
	}
	act, err := s.core.ActOnAgent(ctx, c, agent, nil)
	if err != nil {
		return nil, false, err
	}
	r, err := s.core.Client.Run(ctx, act.Flow, ListEvents, []string{s.core.Keys.Agent(agent), s.core.Keys.Events(agent)},
		act.Organization, act.Family, after, limit+1)
	if act.Family != "" {
		err = act.ErrorFor(err)
	}
	if err != nil {
		return nil, false, err
	}
	page := r.List(0)
	if page.Err != nil {
		return nil, false, page.Err
	}
	more := len(page.Values) > limit
	events := make([]kernel.Event, min(len(page.Values), limit))
	for i := range events {
		if events[i], err = kernel.ReadEvent(page.List(i)); err != nil {
			return nil, false, err
		}
		events[i].Complete(act.Organization, agent)
	}
	return events, more, nil
}

// ValidEventID says whether an event can have this id. The greatest stream id is not valid: Redis refuses to read after it.
func ValidEventID(id string) bool {
	parsed, valid := kernel.ParseEventID(id)
	return valid && parsed != kernel.EventID{Ms: math.MaxUint64, Sequence: math.MaxUint64}
}

// PreState returns the pre-state of a transaction of an agent of the organization as it was given, "" for a transaction that is
// forgotten.
func (s *Reader) PreState(ctx context.Context, organization, agent, transaction uuid.UUID) (string, error) {
	r, err := s.core.Client.Fields(ctx, redisclient.Flow{Owner: organization}, s.core.Keys.Transaction(agent, transaction), "a", "ps")
	if err != nil || r.Optional(0) != string(agent[:]) {
		return "", err
	}
	return r.Optional(1), r.Err
}

package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisclient"
)

// The fields of a session that lists show, by their index in summaryFields.
const (
	summaryAgent = iota
	summaryActions
	summaryMaxActions
	summaryValue
	summaryMaxValue
	summaryExpires
	summaryEnded
	summaryBudget
)

// summaryFields are the fields of a session's hash in this order.
var summaryFields = []string{
	summaryAgent: "a", summaryActions: "n", summaryMaxActions: "ma", summaryValue: "v", summaryMaxValue: "mv",
	summaryExpires: "x", summaryEnded: "e", summaryBudget: "gb",
}

// loadSessionsOf returns a loader that reads sessions first and their agents after, so that it observes every revocation
// acknowledged before the request. Both are one round trip when it knows whose sessions these are: their agent, or uuid.Nil
// for several, of which it remembers those it has read.
func (s *Store) loadSessionsOf(organization, agent uuid.UUID) func(context.Context, []uuid.UUID, time.Time) ([]*SessionSummary, error) {
	return func(ctx context.Context, ids []uuid.UUID, now time.Time) ([]*SessionSummary, error) {
		likely := []uuid.UUID{agent}
		if agent == uuid.Nil {
			likely = s.owners.likely(organization, ids)
		}
		texts, err := s.client.ReadTexts(ctx, flow{Owner: organization}, s.summariesOf(ids), s.agentsToRead(likely))
		if err != nil {
			return nil, err
		}
		revoked := revocations{}
		if err := revoked.take(organization, likely, texts[len(ids):]); err != nil {
			return nil, err
		}
		texts = texts[:len(ids)]
		if err := s.readOwners(ctx, organization, texts, likely, revoked); err != nil {
			return nil, err
		}
		return readSummaries(ids, texts, revoked, now)
	}
}

func (s *Store) summariesOf(ids []uuid.UUID) redisclient.Hashes {
	return redisclient.Hashes{Keys: s.keys.sessions(ids), Fields: summaryFields}
}

// readOwners reads the agents of the sessions that are not among those that were read already.
func (s *Store) readOwners(ctx context.Context, organization uuid.UUID, sessions [][]string, read []uuid.UUID, revoked revocations) error {
	var others []uuid.UUID
	for _, fields := range sessions {
		agent, exists := agentIn(fields)
		if exists && !slices.Contains(read, agent) && !slices.Contains(others, agent) {
			others = append(others, agent)
		}
	}
	s.owners.note(organization, others)
	return s.readAgents(ctx, organization, others, revoked)
}

// agentIn returns the agent of a session, and false for a session that does not exist.
func agentIn(fields []string) (agent uuid.UUID, exists bool) {
	exists = copy(agent[:], fields[summaryAgent]) == len(agent)
	return agent, exists
}

// readSummaries reads the sessions whose agents are the organization's.
func readSummaries(ids []uuid.UUID, texts [][]string, revoked revocations, now time.Time) ([]*SessionSummary, error) {
	var r reply
	found, room := make([]*SessionSummary, len(ids)), make([]SessionSummary, len(ids))
	for i, fields := range texts {
		agent, exists := agentIn(fields)
		ended, isOwn := revoked[agent]
		if !exists || !isOwn {
			continue
		}
		found[i], room[i] = &room[i], readSummary(ids[i], agent, fields, &r)
		e := lifeEvents{expires: room[i].Expires, revoked: ended}
		if text := fields[summaryEnded]; text != "" {
			e.ended = r.ParseTime(text)
		}
		room[i].Status = statusAt(now, e)
	}
	return found, r.Err
}

// readSummary reads a session without its status.
func readSummary(id, agent uuid.UUID, fields []string, r *reply) SessionSummary {
	v := SessionSummary{
		ID: id, Agent: agent,
		ActionCount: r.Parse(fields[summaryActions]), MaxActions: r.Parse(fields[summaryMaxActions]),
		ValueUsed: parseMoney(r, fields[summaryValue]), MaxValue: parseMoney(r, fields[summaryMaxValue]),
		Expires: r.ParseTime(fields[summaryExpires]),
	}
	if b := parseBudget(r, fields[summaryBudget]); b.maxCommitted != nil {
		v.MaxValue = b.maxValue
	}
	return v
}

func parseMoney(r *reply, text string) money.MicroUSD { return money.MicroUSD(r.Parse(text)) }

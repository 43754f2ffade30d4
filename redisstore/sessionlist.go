package redisstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/money"
	"remit/redisstore/internal/kernel"
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
	summaryLeased
	summaryDelegatedActions
	summaryDelegatedValue
	summaryFlags
)

// summaryFields are the fields of a session's hash in this order.
var summaryFields = []string{
	summaryAgent: "a", summaryActions: "n", summaryMaxActions: "ma", summaryValue: "v", summaryMaxValue: "mv",
	summaryExpires: "x", summaryEnded: "e", summaryBudget: "gb", summaryLeased: "lv",
	summaryDelegatedActions: "dn", summaryDelegatedValue: "dv", summaryFlags: "r",
}

// Sessions returns a page of the sessions that the caller may see, newest first. Errors: ErrInvalidAPIKey or
// ErrInvalidToken; ErrUnknownAgent when the query names an agent that the caller may not see.
func (s *Store) Sessions(ctx context.Context, c Caller, q Query) (Page[SessionSummary], error) {
	var ix kernel.Index[SessionSummary]
	switch {
	case c.Token != nil && q.Agent == uuid.Nil:
		q.Agent = c.Token.Agent
		fallthrough
	case q.Agent != uuid.Nil:
		act, err := s.core.ActOnAgent(ctx, c, q.Agent, nil)
		if err != nil {
			return Page[SessionSummary]{}, err
		}
		ix = s.sessionsOf(act)
		ix.Read = s.core.ReadAgentIndex(act, ix.Key)
	case q.Status == Active:
		ix = s.openSessions(c.Key.Organization)
		ix.Read = s.readSessions(*c.Key, listActive, s.keys.LatestExpiry(c.Key.Organization))
	default:
		ix = s.closedSessions(c.Key.Organization)
		ix.Read = s.readSessions(*c.Key, listSessions)
	}
	ix.Matches = func(v *SessionSummary) bool { return q.Status == "" || v.Status == q.Status }
	return kernel.ReadPage(ctx, s.core, ix, q)
}

// loadSessionsOf returns a loader that reads sessions first and their agents after, so that it observes every revocation
// acknowledged before the request. Both are one round trip when it knows whose sessions these are: their agent, or uuid.Nil
// for several, of which it remembers those it has read.
func (s *Store) loadSessionsOf(organization, agent uuid.UUID) func(context.Context, []uuid.UUID, time.Time) ([]*SessionSummary, error) {
	return func(ctx context.Context, ids []uuid.UUID, now time.Time) ([]*SessionSummary, error) {
		if len(ids) == 0 {
			return nil, nil
		}
		likely := []uuid.UUID{agent}
		if agent == uuid.Nil {
			likely = s.core.Owners.Likely(organization, ids)
		}
		texts, agents, err := s.client.ReadTexts(ctx, flow{Owner: organization}, s.summariesOf(ids), s.core.AgentsToRead(likely))
		if err != nil {
			return nil, err
		}
		revoked := kernel.Revocations{}
		if err := revoked.Take(organization, likely, agents); err != nil {
			return nil, err
		}
		owners, err := agentsIn(texts)
		if err != nil {
			return nil, err
		}
		if err := s.readOthers(ctx, organization, owners, likely, revoked); err != nil {
			return nil, err
		}
		return readSummaries(ids, owners, texts, revoked, now)
	}
}

func (s *Store) summariesOf(ids []uuid.UUID) redisclient.Hashes {
	return redisclient.Hashes{Keys: s.keys.Sessions(ids), Fields: summaryFields}
}

// agentsIn returns the agent of each session, uuid.Nil for one that does not exist.
func agentsIn(sessions [][]string) ([]uuid.UUID, error) {
	var r reply
	agents := make([]uuid.UUID, len(sessions))
	for i, fields := range sessions {
		if text := fields[summaryAgent]; text != "" {
			agents[i] = r.ParseID(text)
		}
	}
	return agents, r.Err
}

// readOthers reads those of the sessions' agents that were not read yet.
func (s *Store) readOthers(ctx context.Context, organization uuid.UUID, owners, read []uuid.UUID, revoked kernel.Revocations) error {
	var others []uuid.UUID
	for _, agent := range owners {
		if agent != uuid.Nil && !slices.Contains(read, agent) && !slices.Contains(others, agent) {
			others = append(others, agent)
		}
	}
	s.core.Owners.Note(organization, others)
	return s.core.ReadAgents(ctx, organization, others, revoked)
}

// readSummaries reads the sessions whose agents are the organization's.
func readSummaries(ids, owners []uuid.UUID, texts [][]string, revoked kernel.Revocations, now time.Time) ([]*SessionSummary, error) {
	var r reply
	found, room := make([]*SessionSummary, len(ids)), make([]SessionSummary, len(ids))
	for i, fields := range texts {
		ended, isOwn := revoked[owners[i]]
		if !isOwn {
			continue
		}
		found[i], room[i] = &room[i], readSummary(ids[i], owners[i], fields, &r)
		room[i].Status = statusAt(now, lifeEvents{ended: r.ParseTimeOrZero(fields[summaryEnded]), expires: room[i].Expires, revoked: ended})
	}
	return found, r.Err
}

// readSummary reads a session without its status. Leased value is not used, but held; what is delegated is neither.
func readSummary(id, agent uuid.UUID, fields []string, r *reply) SessionSummary {
	v := SessionSummary{
		ID: id, Agent: agent,
		ActionCount: r.Parse(fields[summaryActions]), MaxActions: r.Parse(fields[summaryMaxActions]),
		ValueUsed: parseMoney(r, fields[summaryValue]), MaxValue: parseMoney(r, fields[summaryMaxValue]),
		Expires: r.ParseTime(fields[summaryExpires]),
	}
	if leased := fields[summaryLeased]; leased != "" {
		v.ValueUsed -= parseMoney(r, leased)
	}
	if flags := fields[summaryFlags]; flags != "" {
		v.keptAbove, v.hasChildren = strings.Contains(flags, keptAbove), strings.Contains(flags, hasChildren)
	}
	if delegated := fields[summaryDelegatedActions]; delegated != "" {
		v.ActionCount -= r.Parse(delegated)
		v.ValueUsed -= parseMoney(r, fields[summaryDelegatedValue])
		v.unsettled = delegated != "0"
	}
	v.unsettled = v.unsettled || v.keptAbove
	if b := parseBudget(r, fields[summaryBudget]); b.maxCommitted != nil {
		v.MaxValue = b.maxValue
	}
	return v
}

func parseMoney(r *reply, text string) money.MicroUSD { return money.MicroUSD(r.Parse(text)) }

package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// Transactions returns a page of the transactions that the caller may see, newest first, without their pre-states,
// post-states and metadata. Errors: ErrInvalidAPIKey or ErrInvalidToken; ErrUnknownAgent or ErrUnknownSession when the query
// names one that the caller may not see.
func (s *Store) Transactions(ctx context.Context, c Caller, q Query) (Page[Transaction], error) {
	var ix kernel.Index[Transaction]
	if c.Token != nil && q.Agent == uuid.Nil {
		q.Agent = c.Token.Agent
	}
	switch {
	case q.Session != uuid.Nil:
		act, err := s.actOnListedSession(ctx, c, q)
		if err != nil {
			return Page[Transaction]{}, err
		}
		ix = s.transactionsIn(act, s.keys.SessionTransactions(act.Agent, q.Session))
		ix.Read = s.core.ReadAgentIndex(act, ix.Key)
	case q.Agent != uuid.Nil:
		act, err := s.core.ActOnAgent(ctx, c, q.Agent, nil)
		if err != nil {
			return Page[Transaction]{}, err
		}
		ix = s.transactionsIn(act, s.keys.AgentTransactions(q.Agent))
		ix.Read = s.core.ReadAgentIndex(act, ix.Key)
	default:
		ix = s.transactionsOf(c.Key.Organization)
		ix.Read = s.core.ReadOrganizationIndex(*c.Key, ix.Key)
	}
	ix.Matches = func(t *Transaction) bool {
		return (q.Status == "" || t.Status == q.Status) && (!q.SettledByExpiry || t.SettledByExpiry)
	}
	found, err := kernel.ReadPage(ctx, s.core, ix, q)
	if q.Session != uuid.Nil && err == ErrUnknownAgent {
		err = ErrUnknownSession // do not reveal that another organization has such a session
	}
	return found, err
}

// transactionsOf is the organization's index of transactions.
func (s *Store) transactionsOf(organization uuid.UUID) kernel.Index[Transaction] {
	return kernel.Index[Transaction]{
		Key: s.keys.OrganizationTransactions(organization), Load: s.loadTransactionsOf(organization),
		Late: s.core.LateIndex(organization, s.keys.OrganizationTransactions, s.keys.SuspectTransactions),
	}
}

// transactionsIn is an index of transactions in the agent's cell: the agent's own, or a session's.
func (s *Store) transactionsIn(act kernel.Actor, key string) kernel.Index[Transaction] {
	return kernel.Index[Transaction]{Key: key, Members: kernel.OfCell(act.Agent), Load: s.loadTransactionsOf(act.Organization)}
}

// actOnListedSession returns the actor for reading what belongs to the session that the query names.
func (s *Store) actOnListedSession(ctx context.Context, c Caller, q Query) (kernel.Actor, error) {
	if c.Token != nil && q.Agent != c.Token.Agent {
		return s.core.ActOnAgent(ctx, c, q.Agent, nil) // it refuses the other agent
	}
	act, err := s.core.ActOnSession(ctx, c, q.Session, nil)
	if err != nil {
		return kernel.Actor{}, err
	}
	owner := act.Agent
	if c.Token != nil {
		if owner, err = s.ownerAmong(ctx, act, q.Session); err != nil {
			return kernel.Actor{}, err
		}
	}
	if owner != act.Agent || q.Agent != uuid.Nil && q.Agent != act.Agent {
		return kernel.Actor{}, ErrUnknownSession
	}
	return act, nil
}

// ownerAmong returns the agent of a session in the actor's cell, after it has checked the actor's token.
func (s *Store) ownerAmong(ctx context.Context, act kernel.Actor, session uuid.UUID) (uuid.UUID, error) {
	if _, err := s.client.Run(ctx, act.Flow, kernel.CheckToken, []string{s.keys.Agent(act.Agent)}, act.Organization, act.Family); err != nil {
		return uuid.Nil, err
	}
	return s.core.AgentOf(ctx, act.Flow, session)
}

// loadTransactionsOf returns a loader that reads transactions first, then their agents and sessions.
func (s *Store) loadTransactionsOf(organization uuid.UUID) func(context.Context, []uuid.UUID, time.Time) ([]*Transaction, error) {
	return func(ctx context.Context, ids []uuid.UUID, now time.Time) ([]*Transaction, error) {
		fields := append(append([]string{}, listedFacts...), listedState...)
		replies, err := s.client.ReadAll(ctx, flow{Owner: organization}, kernel.Map(ids, func(id uuid.UUID) string { return s.keys.Transaction(id, id) }), fields...)
		if err != nil {
			return nil, err
		}
		own := kernel.Revocations{}
		if err := s.core.ReadAgents(ctx, organization, kernel.AgentsOf(replies), own); err != nil {
			return nil, err
		}
		transactions := make([]*Transaction, len(ids))
		var pending []int
		for i, r := range replies {
			if r.Optional(0) == "" {
				continue
			}
			if _, isOwn := own[r.ID(0)]; !isOwn {
				continue
			}
			if transactions[i], err = readListed(ids[i], r, now); err != nil {
				return nil, err
			}
			if transactions[i].Session != uuid.Nil && r.Text(len(listedFacts)+stateStatus) == string(Pending) {
				pending = append(pending, i)
			}
		}
		return transactions, s.applySessionEnds(ctx, organization, transactions, pending, now)
	}
}

// applySessionEnds gives the transactions at these places, which are stored as pending, the status that follows from the end
// of their sessions.
func (s *Store) applySessionEnds(ctx context.Context, organization uuid.UUID, all []*Transaction, places []int, now time.Time) error {
	sessions := kernel.Map(places, func(i int) string { return s.keys.Session(all[i].Session, all[i].Session) })
	ends, err := s.client.ReadAll(ctx, flow{Owner: organization}, sessions, "a", "e")
	if err != nil {
		return err
	}
	// A transaction that is still pending after this read of its session's end was pending when the session ended.
	pending := kernel.Map(places, func(i int) string { return s.keys.Transaction(all[i].ID, all[i].ID) })
	again, err := s.client.ReadAll(ctx, flow{Owner: organization}, pending, listedState...)
	if err != nil {
		return err
	}
	for i, place := range places {
		ended := ends[i].Optional(1)
		if ends[i].Optional(0) == "" {
			ended = sessionGone
		}
		if again[i].Optional(0) == "" {
			continue // it has expired since the first read, which stands
		}
		settled, err := all[place].withListed(again[i], ended, now)
		if err != nil {
			return err
		}
		*all[place] = settled
	}
	return nil
}

package redisstore

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// An organization's sessions are in two indexes. The open index lists a session from before its creation. The closed index
// lists sessions that a reader has observed to be inactive. One script moves an entry between them, so a script that reads
// both finds every session. If Redis's clock steps back, an expired session is active again. So Redis stores the latest
// observed expiry, and until that time a list of active sessions reads both indexes. Readers of the open index check each
// session's status.

var (
	indexSession  = kernel.NewScript("budgets/index_session", writes).Watched(wroteThreshold(1))
	closeSessions = kernel.NewScript("budgets/close_sessions", bestEffort)
	listSessions  = kernel.NewScript("budgets/list_sessions", reads)
	listActive    = kernel.NewScript("budgets/list_active_sessions", reads)
)

// closeTime bounds the move of a session that has ended or expired, because the response waits for it.
const closeTime = 500 * time.Millisecond

// closeSessions moves inactive sessions to the closed ones. expired is the latest expiry of those that have expired, zero for
// none. Failures are ignored, because the next list, pruning or recorder moves the sessions that remain.
func (s *Store) closeSessions(ctx context.Context, organization uuid.UUID, ids []uuid.UUID, expired time.Time) {
	if len(ids) == 0 {
		return
	}
	latest := ""
	if !expired.IsZero() {
		latest = strconv.FormatInt(expired.UnixMilli(), 10)
	}
	args := append(make([]any, 0, 2+len(ids)), latest, s.config.Retention.Milliseconds())
	for _, id := range ids {
		args = append(args, id)
	}
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	keys := []string{s.keys.OrganizationOpen(organization), s.keys.OrganizationClosed(organization), s.keys.LatestExpiry(organization)}
	_, _ = s.client.Run(ctx, flow{Owner: organization}, closeSessions, keys, args...)
}

// reopenSession adds an active session to the open ones, because it may have been closed as expired before Redis's clock
// stepped back. Failures are ignored.
func (s *Store) reopenSession(ctx context.Context, organization, id uuid.UUID) {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	_, _ = s.client.Call(ctx, flow{Owner: organization}, bestEffort, "zadd", s.keys.OrganizationOpen(organization), "0", string(id[:]))
}

// openSessions is the organization's index of open sessions. Its repair moves inactive ones to the closed sessions, those of a
// tree when they are settled: no request may look at them again.
func (s *Store) openSessions(organization uuid.UUID) kernel.Index[SessionSummary] {
	ix := s.closedSessions(organization)
	ix.Key = s.keys.OrganizationOpen(organization)
	ix.Belongs = func(v *SessionSummary) bool { return v.Status == Active }
	ix.Move = func(ctx context.Context, over []*SessionSummary) {
		var inTrees []*SessionSummary
		over = slices.DeleteFunc(over, func(v *SessionSummary) bool {
			if v.inTree() {
				inTrees = append(inTrees, v)
			}
			return v.inTree()
		})
		s.closeListed(ctx, organization, over)
		settled, _ := s.settleTrees(ctx, organization, inTrees)
		s.closeListed(ctx, organization, settled)
	}
	return ix
}

// closeListed is closeSessions for sessions that a reader has found inactive.
func (s *Store) closeListed(ctx context.Context, organization uuid.UUID, over []*SessionSummary) {
	ids, latest := make([]uuid.UUID, len(over)), time.Time{}
	for i, v := range over {
		ids[i] = v.ID
		if v.Status == Expired && v.Expires.After(latest) {
			latest = v.Expires
		}
	}
	s.closeSessions(ctx, organization, ids, latest)
}

// closedSessions is the organization's index of closed sessions. Its repair settles those that are not.
func (s *Store) closedSessions(organization uuid.UUID) kernel.Index[SessionSummary] {
	return kernel.Index[SessionSummary]{
		Key: s.keys.OrganizationClosed(organization), Load: s.loadSessionsOf(organization, uuid.Nil),
		Late:    s.core.LateIndex(organization, s.keys.OrganizationOpen, s.keys.SuspectSessions),
		Belongs: func(v *SessionSummary) bool { return v.Status == Active || !v.unsettled },
		Move:    func(ctx context.Context, over []*SessionSummary) { s.settleTrees(ctx, organization, over) },
	}
}

// sessionsOf is the index of the agent's sessions.
func (s *Store) sessionsOf(act kernel.Actor) kernel.Index[SessionSummary] {
	return kernel.Index[SessionSummary]{
		Key: s.keys.AgentSessions(act.Agent), Members: kernel.OfCell(act.Agent), Load: s.loadSessionsOf(act.Organization, act.Agent),
	}
}

// readSessions returns what reads a page of the open and the closed sessions of the key's organization as one index.
func (s *Store) readSessions(key APIKey, sc *script, more ...string) func(context.Context, uuid.UUID, int) ([]uuid.UUID, time.Time, error) {
	o := key.Organization
	keys := append([]string{s.keys.Organization(o), s.keys.OrganizationOpen(o), s.keys.OrganizationClosed(o)}, more...)
	return func(ctx context.Context, before uuid.UUID, limit int) ([]uuid.UUID, time.Time, error) {
		r, err := s.core.RunByKey(ctx, key, s.core.Proven.Flow(key), sc, keys, key.Credential(), kernel.Members{}.Below(before), limit)
		if err != nil {
			return nil, time.Time{}, err
		}
		now, open, closed := r.Time(0), kernel.Members{}.Packed(r, r.Text(1)), kernel.Members{}.Packed(r, r.Text(2))
		return newestOf(open, closed, limit), now, r.Err
	}
}

// newestOf merges two lists of ids, each newest first, without duplicates, into at most limit ids.
func newestOf(a, b []uuid.UUID, limit int) []uuid.UUID {
	merged := make([]uuid.UUID, 0, min(limit, len(a)+len(b)))
	for len(merged) < limit && len(a)+len(b) > 0 {
		if len(a) == 0 || len(b) > 0 && bytes.Compare(a[0][:], b[0][:]) < 0 {
			a, b = b, a
		}
		if len(b) > 0 && a[0] == b[0] {
			b = b[1:]
		}
		merged, a = append(merged, a[0]), a[1:]
	}
	return merged
}

// closeSample is how many open sessions closeSome checks.
const closeSample = 256

// closeSome moves inactive sessions from the open to the closed ones, and returns whether it did. It does nothing when it was
// called for the organization a moment ago.
func (s *Store) closeSome(ctx context.Context, organization uuid.UUID) bool {
	if !s.core.Usage.MayPrune(organization) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	prune(ctx, s, s.openSessions(organization), closeSample)
	return true
}

package redisstore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/feed"
	"remit/redisstore/internal/kernel"
)

// look is a recorder's look at what entries name, in one organization.
type look struct {
	*dueRecorder
	organization uuid.UUID
	now          int64 // ms since 1970, of Redis

	mu    sync.Mutex
	again strings.Builder // entries
}

// lookAgainAt enters something among what is due once more.
func (l *look) lookAgainAt(of byte, id uuid.UUID, at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.again.WriteString(feed.DueAt(of, id, at))
}

func (l *look) later(of byte, id uuid.UUID) { l.lookAgainAt(of, id, l.now+lookAgain.Milliseconds()) }

// at looks at each entry's object, some at a time, and rests between.
func (l *look) at(ctx context.Context, entries []feed.DueEntry) {
	var ids []uuid.UUID
	for _, e := range entries {
		switch e.Of {
		case feed.DueSession:
			ids = append(ids, e.ID)
		case feed.DueParts:
			l.atParts(ctx, e.ID)
		case feed.DueSessions:
			l.atSessionsOf(ctx, e.ID)
		}
	}
	for some := range slices.Chunk(ids, lookedAtOnce) {
		began := time.Now()
		l.atSessions(ctx, some)
		if kernel.Rest(ctx, min(restFactor*time.Since(began), longestRest)) != nil {
			return
		}
	}
}

// atParts settles what a session has set aside for children that are over or were never created.
func (l *look) atParts(ctx context.Context, session uuid.UUID) {
	f := flow{Owner: l.organization}
	agent, err := l.core.AgentOf(ctx, f, session)
	switch err {
	case nil:
		l.settleBelow(ctx, l.organization, place{session, agent})
	case ErrUnknownSession:
	default:
		l.later(feed.DueParts, session)
	}
}

// atSessionsOf closes a revoked agent's sessions.
func (l *look) atSessionsOf(ctx context.Context, agent uuid.UUID) {
	ix := l.openSessions(l.organization)
	err := l.core.EachSession(ctx, flow{Owner: l.organization}, agent, func(ids []uuid.UUID) error {
		for some := range slices.Chunk(ids, lookedAtOnce) {
			found, err := ix.Load(ctx, some, time.UnixMilli(l.now))
			if err != nil {
				return err
			}
			ix.Move(ctx, slices.DeleteFunc(found, func(v *SessionSummary) bool { return v == nil || v.Status == Active }))
		}
		return nil
	})
	if err != nil {
		l.later(feed.DueSessions, agent)
	}
}

// The fields of a session that a look reads, by their index in lookedFields.
const (
	lookedAgent = iota
	lookedExpires
	lookedEnded
	lookedHoldsDue
	lookedFlags
	lookedNoted
)

var lookedFields = []string{
	lookedAgent: "a", lookedExpires: "x", lookedEnded: "e", lookedHoldsDue: "hx", lookedFlags: "r", lookedNoted: "w",
}

// expiryNoted is the flag of a session whose expiry is noted; see lua/budgets/include/flags.lua.
const expiryNoted = "x"

// atSessions records what time has brought to sessions. What fails it looks at again later, one by one if the servers do not all answer.
func (l *look) atSessions(ctx context.Context, ids []uuid.UUID) {
	found, err := l.client.ReadAll(ctx, flow{Owner: l.organization}, l.keys.Sessions(ids), lookedFields...)
	if err != nil && len(ids) > 1 {
		_ = eachOf(ctx, len(ids), func(ctx context.Context, i int) error {
			l.atSessions(ctx, ids[i:i+1])
			return nil
		})
		return
	}
	if err != nil {
		l.later(feed.DueSession, ids[0])
		return
	}
	var due []place
	var over []*SessionSummary
	for i, r := range found {
		if r.Optional(lookedAgent) == "" {
			continue
		}
		p, flags := place{ids[i], r.ID(lookedAgent)}, r.Optional(lookedFlags)
		expired := r.Number(lookedExpires) <= l.now
		holdsDue := r.Optional(lookedHoldsDue) != "" && r.Number(lookedHoldsDue) <= l.now
		if r.Err != nil {
			continue // what no version can read keeps nothing else waiting
		}
		if due := r.Optional(lookedHoldsDue); due != "" && !holdsDue {
			l.lookAgainAt(feed.DueSession, p.session, r.Number(lookedHoldsDue))
		}
		if holdsDue || expired && r.Optional(lookedEnded) == "" && !strings.Contains(r.Optional(lookedNoted), expiryNoted) {
			due = append(due, p)
		}
		if expired || r.Optional(lookedEnded) != "" {
			over = append(over, &SessionSummary{
				ID: p.session, Agent: p.agent, Status: Expired, Expires: r.Time(lookedExpires),
				keptAbove: strings.Contains(flags, keptAbove), hasChildren: strings.Contains(flags, hasChildren),
			})
		}
	}
	l.release(ctx, due)
	l.close(ctx, over)
}

// release runs release_holds.lua on sessions, in one pipeline.
func (l *look) release(ctx context.Context, due []place) {
	calls := make([]*redisclient.BatchCall, len(due))
	for i, p := range due {
		act := ownActor(l.organization, p.agent)
		command := redisclient.NewCommand(act.Flow, len(l.releaseKeys(act, p.session)))
		command.Keys(l.releaseKeys(act, p.session)...)
		command.Arguments(l.core.Audit(ctx, act), l.daysKept(), p.agent)
		calls[i] = &redisclient.BatchCall{Script: releaseHolds, Command: command}
	}
	alone := func(ctx context.Context, i int) {
		calls[i].Reply, calls[i].Err = l.client.RunCommand(ctx, releaseHolds, calls[i].Command)
	}
	l.client.RunAll(ctx, calls, func(int) {}, alone)
	for i, call := range calls {
		if call.Err != nil {
			l.later(feed.DueSession, due[i].session)
			continue
		}
		l.noteReleased(l.organization, call.Reply)
		if call.Reply.Text(2) != "" {
			l.lookAgainAt(feed.DueSession, due[i].session, call.Reply.Number(2))
		}
	}
}

// close closes sessions that are over, and moves them to the organization's closed ones.
func (l *look) close(ctx context.Context, over []*SessionSummary) {
	var inTrees []*SessionSummary
	settled := slices.DeleteFunc(over, func(v *SessionSummary) bool {
		if v.inTree() {
			inTrees = append(inTrees, v)
		}
		return v.inTree()
	})
	settled = append(settled, l.settleTrees(ctx, l.organization, inTrees)...)
	l.closeListed(ctx, l.organization, settled)
	for _, v := range inTrees {
		if !slices.Contains(settled, v) {
			l.later(feed.DueSession, v.ID)
		}
	}
}

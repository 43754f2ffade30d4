package redisstore

import (
	"context"
	"math"
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

	until time.Time // what is left then waits for the next turn

	mu      sync.Mutex
	again   strings.Builder    // entries
	awaited map[uuid.UUID]bool // sessions that are looked at again at a time of their own
}

// lookAgainAt enters something among what is due once more.
func (l *look) lookAgainAt(of byte, id uuid.UUID, at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.again.WriteString(feed.DueAt(of, id, at))
}

// later enters what could not be looked at.
func (l *look) later(of byte, id uuid.UUID) { l.lookAgainAt(of, id, l.now+retryAfter.Milliseconds()) }

func (l *look) noteAwaited(session uuid.UUID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaited[session] = true
}

func (l *look) isAwaited(session uuid.UUID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.awaited[session]
}

// at looks at each entry's object, some at a time, and rests between.
func (l *look) at(ctx context.Context, entries []feed.DueEntry) {
	var ids []uuid.UUID
	for _, e := range entries {
		switch {
		case e.Of == feed.DueSession:
			ids = append(ids, e.ID)
		case time.Now().After(l.until):
			l.lookAgainAt(e.Of, e.ID, l.now)
		case e.Of == feed.DueParts:
			l.atParts(ctx, e.ID)
		case e.Of == feed.DueSessions:
			l.atSessionsOf(ctx, e.ID)
		}
	}
	for some := range slices.Chunk(ids, lookedAtOnce) {
		began := time.Now()
		if began.After(l.until) {
			for _, id := range some {
				l.lookAgainAt(feed.DueSession, id, l.now)
			}
			continue
		}
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

// atSessionsOf settles those of a revoked agent's sessions that are in trees. The others have set nothing aside.
func (l *look) atSessionsOf(ctx context.Context, agent uuid.UUID) {
	load, anyFailed := l.loadSessionsOf(l.organization, agent), false
	err := l.core.EachSession(ctx, flow{Owner: l.organization}, agent, func(ids []uuid.UUID) error {
		found, err := load(ctx, ids, time.UnixMilli(l.now))
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(found, func(v *SessionSummary) bool { return v == nil || v.Status == Active || !v.unsettled })
		for some := range slices.Chunk(found, lookedAtOnce) {
			if time.Now().After(l.until) {
				return context.DeadlineExceeded
			}
			settled, failed := l.settleTrees(ctx, l.organization, some)
			l.closeListed(ctx, l.organization, settled)
			anyFailed = anyFailed || len(failed) > 0
		}
		return nil
	})
	if err != nil || anyFailed {
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
	lookedUnsettled
)

var lookedFields = []string{
	lookedAgent: "a", lookedExpires: "x", lookedEnded: "e", lookedHoldsDue: "hx", lookedFlags: "r", lookedNoted: "w",
	lookedUnsettled: "xu",
}

// settlesLate is for how long a session that is over waits for a late settlement; see lua/budgets/include/settles_late.lua.
const settlesLate = 20 * time.Second

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
		v := readLooked(r, l.now)
		if r.Err != nil {
			continue // what no version can read keeps nothing else waiting
		}
		if v.next != never {
			l.noteAwaited(ids[i])
		}
		switch {
		case v.isDue:
			due = append(due, place{ids[i], v.agent}) // which says when to look next
		case v.next != never:
			l.lookAgainAt(feed.DueSession, ids[i], v.next)
		}
		if v.isOver {
			over = append(over, &SessionSummary{
				ID: ids[i], Agent: v.agent, Status: Expired, Expires: r.Time(lookedExpires),
				keptAbove: strings.Contains(v.flags, keptAbove), hasChildren: strings.Contains(v.flags, hasChildren),
			})
		}
	}
	l.release(ctx, due)
	l.close(ctx, over)
}

// looked is what a look found of a session.
type looked struct {
	agent  uuid.UUID
	flags  string
	isDue  bool  // holds or leases are due, or its expiry is to be noted
	isOver bool  // it has ended or expired
	next   int64 // when something of it is due, in ms since 1970
}

// never is after every time, in ms since 1970.
const never = math.MaxInt64

func readLooked(r *reply, now int64) looked {
	expires, holdsDue, ended := r.Number(lookedExpires), int64(never), r.Optional(lookedEnded) != ""
	if r.Optional(lookedHoldsDue) != "" {
		holdsDue = r.Number(lookedHoldsDue)
	}
	expired := expires <= now
	notesExpiry := expired && !ended && !strings.Contains(r.Optional(lookedNoted), expiryNoted)
	v := looked{agent: r.ID(lookedAgent), flags: r.Optional(lookedFlags), isDue: holdsDue <= now || notesExpiry, isOver: expired || ended, next: holdsDue}
	if !v.isOver {
		v.next = min(v.next, expires)
	}
	if r.Optional(lookedUnsettled) != "" {
		if settled := r.Number(lookedUnsettled) + settlesLate.Milliseconds(); settled > now {
			v.next = min(v.next, settled)
		}
	}
	return v
}

// release runs release_holds.lua on sessions, in one pipeline.
func (l *look) release(ctx context.Context, due []place) {
	calls := make([]*redisclient.BatchCall, len(due))
	for i, p := range due {
		act := ownActor(l.organization, p.agent)
		keys := l.releaseKeys(act, p.session)
		command := redisclient.NewCommand(act.Flow, len(keys))
		command.Keys(keys...)
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
	over = slices.DeleteFunc(over, func(v *SessionSummary) bool {
		if v.inTree() {
			inTrees = append(inTrees, v)
		}
		return v.inTree()
	})
	settled, failed := l.settleTrees(ctx, l.organization, inTrees)
	l.closeListed(ctx, l.organization, append(over, settled...))
	for _, v := range inTrees {
		switch {
		case slices.Contains(failed, v):
			l.later(feed.DueSession, v.ID)
		case !slices.Contains(settled, v) && !l.isAwaited(v.ID): // a child that closes settles the one above it, so this is for failures there
			l.lookAgainAt(feed.DueSession, v.ID, l.now+settleAgain.Milliseconds())
		}
	}
}

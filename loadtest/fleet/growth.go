package fleet

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

const (
	growersOfATree = 2
	growerPause    = 4 * time.Millisecond // leaves the machine time for the service
	answerPatience = 20 * time.Second     // for the calls that have no answer yet when the growers stop
	roomPause      = time.Second          // between two requests for room that must come back
)

// Growth is a fleet that grows trees of sessions while a test breaks the service. It repeats what is idempotent until it is answered, at
// one instance after the other. Some children, top-ups and ends it requests once and without an idempotency key, so that what is set
// aside may belong to no caller, and half of the children with tokens of agents.
type Growth struct {
	f      *fleet
	stop   context.CancelFunc // begins nothing more
	giveUp context.CancelFunc // ends the calls too
	ended  chan struct{}      // closed when all growers have ended
}

// Grow starts to grow so many trees at once, each followed by another, through these instances of the service. Stop it after use.
func Grow(ctx context.Context, instances []string, slots int) (*Growth, error) {
	// The rate and the duration say what a tree may use, and how long it may last.
	cfg := config{scenario: trees, agents: slots, sessions: 1, rate: 1, duration: 30 * time.Minute, addr: instances[0], patience: closePatience,
		keys: true, breaking: true}
	f, err := newFleet(cfg)
	if err != nil {
		return nil, err
	}
	for _, base := range instances[1:] {
		f.wire.hosts = append(f.wire.hosts, newHost(base, maxInFlight))
	}
	if err := f.setUp(ctx); err != nil {
		return nil, err
	}
	g := &Growth{f: f, ended: make(chan struct{})}
	var working, calling context.Context
	working, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	calling, g.giveUp = context.WithCancel(context.WithoutCancel(ctx))
	first := rand.Int64N(math.MaxInt32)
	go func() {
		defer close(g.ended)
		drive(working, growersOfATree*slots, newPacer(math.MaxInt64, 0, 0), func(k int64, due time.Time) {
			f.inTree(calling, nthAction(first+k, cfg), due)
			sleepOrDone(working, growerPause)
		})
	}()
	return g, nil
}

// Stop returns when every grower has finished what it had begun. It may be called again.
func (g *Growth) Stop() {
	g.stop()
	timer := time.AfterFunc(answerPatience, g.giveUp)
	defer timer.Stop()
	<-g.ended
}

// Acknowledged is how many calls were acknowledged so far.
func (g *Growth) Acknowledged() int64 { return g.f.stats.acknowledged() }

// BrokenOff is how many requests of an operation, such as "child", "top-up" or "end", got no answer.
func (g *Growth) BrokenOff(named string) (n int64) {
	for op := range operations {
		if op.String() == named {
			n += g.f.brokenOff[op].Load()
		}
	}
	return n
}

// AgentID is the id of an agent whose trees grow in the nth slot.
func (g *Growth) AgentID(n int) string { return g.f.agents[n%len(g.f.agents)].sdk.ID() }

// NeedParts stops the growers, ends all below the roots that live, and has each of these hold all that is free then. A part without a
// session takes half a minute to come back.
func (g *Growth) NeedParts(ctx context.Context) {
	g.Stop()
	all := g.f.grove.all
	_ = each(ctx, len(all), func(ctx context.Context, i int) error {
		if root := all[i].root(); !root.ending {
			g.f.needAll(ctx, root)
		}
		return nil
	})
}

// Finish stops the growers, ends all trees, asks the budget for all that is free then, and checks everything. It returns what was measured
// and found, and whether everything reconciles.
func (g *Growth) Finish(ctx context.Context) (report string, reconciled bool) {
	g.Stop()
	defer g.giveUp()
	err := g.f.reconcileTrees(ctx)
	for _, host := range g.f.wire.hosts {
		host.CloseIdleConnections()
	}
	var text strings.Builder
	writeTable(&text, g.f)
	writeTotals(&text, g.f)
	if err != nil {
		fmt.Fprintln(&text, "the totals were not checked:", err)
	}
	return text.String(), err == nil && g.f.audit.clean()
}

// sendsOnce says whether an action is to be sent once.
func (f *fleet) sendsOnce(a action) bool { return f.cfg.breaking && a.draw>>20%4 == 0 }

// noteBroken counts exchanges without an answer, and finds internal errors: no fault of what the service uses explains one.
func (f *fleet) noteBroken(t *recorder) {
	for _, e := range t.own() {
		switch {
		case e.reply.status == http.StatusInternalServerError:
			f.audit.add([]violation{found(ruleStatus, t.op.String(), "%s answered %s", e.path, e.reply)})
		case e.reply.status == 0 && kindOf(e.reply) != connectionRefused:
			f.brokenOff[t.op].Add(1)
		}
	}
}

// needAll ends the children of a root, and has it hold all that is free then.
func (f *fleet) needAll(ctx context.Context, root *session) {
	read := f.asks(ctx, opTree, time.Now(), treeOf(root)).reply()
	s, err := readTree(read)
	if err != nil || read.outcome() != acknowledged {
		f.audit.add([]violation{found(ruleUnchecked, root.sdk.ID(), "its tree: %s, %v", read, err)})
		return
	}
	for _, child := range root.children {
		child.willEnd()
	}
	for _, child := range s.Children { // also those whose creation was not answered
		if child.Status == statusActive { // what is below one that is over must end without us
			ended := f.asks(ctx, opEnd, time.Now(), endOf(child.ID, false)).reply()
			f.audit.add(checkEnd(sessionFact{session: child.ID, end: ended}))
		}
	}
	f.turn(ctx, root, free, time.Now())
	most := mostUsed(root.tree.nodes)
	all := action{kind: lateAction.kind, ending: rolledBack, requested: charge{1, s.MaxValue - s.ValueHeld - most.used}}
	if all.requested.value > 0 && most.count < s.MaxActions {
		f.awaitRoom(ctx, root.sdk.ID(), func() reply { return f.transact(ctx, root, all, time.Now()).reply() })
	}
}

// needBudget asks the budget for all that must be free when all trees have ended.
func (f *fleet) needBudget(ctx context.Context) {
	room := f.budgetNow()
	for _, t := range f.grove.all {
		room -= mostUsed(t.nodes).used
	}
	if room <= 0 {
		f.audit.add([]violation{found(ruleExceeded, budgetSubject, "%s USD of it are left", room)})
		return
	}
	f.awaitRoom(ctx, budgetSubject, func() reply {
		made := f.asks(ctx, opSession, time.Now(), f.rootOf(f.agents[0], limits{1, room})).reply()
		if made.outcome() == acknowledged {
			f.asks(ctx, opEnd, time.Now(), endOf(decoded[endAnswer](made.body).ID, false))
		}
		return made
	})
}

// mostUsed is the most that sessions can have used by themselves.
func mostUsed(list []*session) (sum state) {
	for _, s := range list {
		most := s.ledger.sums().window().most()
		sum.count += most.count
		sum.used += most.used
	}
	return sum
}

// awaitRoom repeats a request until it finds the room that must come back.
func (f *fleet) awaitRoom(ctx context.Context, subject string, asks func() reply) {
	for began := time.Now(); ; sleepOrDone(ctx, roomPause) {
		r := asks()
		if r.outcome() == acknowledged {
			return
		}
		if time.Since(began) > f.cfg.patience || ctx.Err() != nil {
			f.audit.add([]violation{found(rulePart, subject, "after %s: %s %s", f.cfg.patience, r, readProblem(r).Limit)})
			return
		}
	}
}

package redisstore

import (
	"cmp"
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"remit/internal/redisclient"
	"remit/redisstore/internal/feed"
	"remit/redisstore/internal/kernel"
)

// What time brings follows from what is stored, and every reader derives it. A recorder also writes it down soon after, though no request
// comes: events, the return of parts and reservations, the end of a budget's period. It decides nothing: each step is a script that requests
// run too when they meet what is due, so any number of recorders may do the same thing at once, and one that ends leaves nothing behind.
//
// The leader of an organization's feed stores what events make due (feed/due.go), and a queue over all organizations says where something
// is due next. A recorder claims organizations for a while, and looks at what their entries name. Entries that something has overtaken
// cost a read.

var (
	claimDue  = kernel.NewScript("records/claim_due", bestEffort)
	finishDue = kernel.NewScript("records/finish_due", bestEffort)
	takeDue   = kernel.NewScript("records/take_due", bestEffort)
	endPeriod = kernel.NewScript("budgets/end_period", bestEffort).Watched(wroteThreshold(1))
)

const (
	// duePause is the interval at which a recorder asks what is due, and fullPause after Redis could not write.
	duePause  = time.Second
	fullPause = 10 * time.Second
	// dueClaim is how long a recorder that has ended keeps others from an organization.
	dueClaim = 10 * time.Second
	// dueTurn is how long a recorder works on an organization while others wait.
	dueTurn = 2 * time.Second
	// dueOrganizations is how many organizations a recorder works on at once.
	dueOrganizations = 8
	// chunksAtOnce is how many chunks of entries it reads at once, each of up to 239 entries. What it cannot look at within a turn it enters
	// anew, so that no chunk keeps others waiting.
	chunksAtOnce = 2
	// lookedAtOnce is how many sessions it looks at in one pipeline. Then it leaves Redis to others for a moment, as folding does.
	lookedAtOnce = 32
	// retryAfter is when it looks again at what it could not read, release or settle, and settleAgain at a session that is over and waits for
	// its children.
	retryAfter, settleAgain = 10 * time.Second, time.Minute
)

var dueLag = prometheus.NewDesc("remit_due_lag_seconds",
	"How long the oldest of what this instance has yet to record has been due: expired sessions, holds and leases, ends of budgets' periods.", nil, nil)

// dueRecorder records what is due, until it is closed.
type dueRecorder struct {
	*Store
	places chan struct{} // one for each organization that it works on
	stop   context.CancelFunc
	ended  sync.WaitGroup

	mu   sync.Mutex
	late map[uuid.UUID]lateness // of organizations that it works on, or has left unfinished
}

// lateness is since when something is due, and when that was seen.
type lateness struct{ since, seen time.Time }

// record starts a recorder.
func (s *Store) record() *dueRecorder {
	ctx, stop := context.WithCancel(kernel.ByTime(context.Background()))
	r := &dueRecorder{Store: s, places: make(chan struct{}, dueOrganizations), stop: stop, late: map[uuid.UUID]lateness{}}
	r.ended.Go(func() { r.run(ctx) })
	return r
}

func (r *dueRecorder) close() {
	r.stop()
	r.ended.Wait()
}

func (r *dueRecorder) run(ctx context.Context) {
	pause := duePause
	for kernel.Rest(ctx, pause/2+rand.N(pause)) == nil { //nolint:gosec // any number will do
		pause = duePause
		if err := r.claim(ctx); redisclient.RefusedWrite(err) {
			pause = fullPause
		}
	}
}

// claim claims organizations in which something is due, and works on them.
func (r *dueRecorder) claim(ctx context.Context) error {
	free := cap(r.places) - len(r.places)
	if free == 0 {
		return nil
	}
	found, err := r.client.Run(ctx, kernel.OwnFlow, claimDue, r.queueKeys(), free, dueClaim.Milliseconds())
	if err != nil {
		return err
	}
	organizations, versions := found.List(0), found.List(1)
	for i := range organizations.Values {
		organization, version := organizations.ID(i), versions.Text(i)
		r.places <- struct{}{}
		r.ended.Go(func() {
			defer func() { <-r.places }()
			ctx, cancel := context.WithTimeout(ctx, dueClaim)
			defer cancel()
			r.recordFor(ctx, organization, version)
		})
	}
	return organizations.Err
}

func (r *dueRecorder) queueKeys() []string { return []string{r.keys.DueQueue(), r.keys.DueVersions()} }

// recordFor records what is due in an organization, as far as its turn lasts. If it fails, the claim ends by itself.
func (r *dueRecorder) recordFor(ctx context.Context, organization uuid.UUID, version string) {
	defer r.recovered()
	var next string
	var done []any
	for began, again := time.Now(), ""; ; {
		most := chunksAtOnce
		if time.Since(began) > dueTurn {
			most = 0
		}
		taken, err := r.take(ctx, organization, most, again, done)
		if err != nil {
			return
		}
		if next = taken.next; len(taken.chunks) == 0 {
			break
		}
		if again, done, err = r.recordChunks(ctx, organization, taken); err != nil {
			return
		}
	}
	_, _ = r.client.Run(ctx, kernel.OwnFlow, finishDue, r.queueKeys(), organization, version, next)
}

// DueLag returns how long the first of what is not recorded yet has been due in an organization, 0 for nothing. Errors: ErrUnavailable.
func (s *Store) DueLag(ctx context.Context, organization uuid.UUID) (time.Duration, error) {
	if s.recorder == nil {
		return 0, nil
	}
	t, err := s.recorder.take(ctx, organization, 0, "", nil)
	if due, wrong := strconv.ParseInt(t.next, 10, 64); wrong == nil {
		return max(time.Duration(t.now-due)*time.Millisecond, 0), err
	}
	return 0, err
}

// takenDue is what is due in an organization.
type takenDue struct {
	now    int64 // ms since 1970, of Redis
	chunks []string
	next   string // when what it leaves is due, in ms since 1970; "" for nothing
}

func (r *dueRecorder) take(ctx context.Context, organization uuid.UUID, most int, again string, done []any) (takenDue, error) {
	keys := []string{r.keys.Organization(organization), r.keys.Due(organization)}
	found, err := r.client.Run(ctx, flow{Owner: organization}, takeDue, keys, append([]any{most, again}, done...)...)
	if err != nil {
		return takenDue{}, err
	}
	t := takenDue{now: found.Number(0), next: found.Text(2)}
	chunks := found.List(1)
	for i := range chunks.Values {
		t.chunks = append(t.chunks, chunks.Text(i))
	}
	r.noteLate(organization, time.UnixMilli(t.now), cmp.Or(found.Text(3), t.next))
	return t, cmp.Or(found.Err, chunks.Err)
}

// noteLate notes how late the first of what is due in an organization is: due is in ms since 1970, "" for nothing.
func (r *dueRecorder) noteLate(organization uuid.UUID, now time.Time, due string) {
	at, err := strconv.ParseInt(due, 10, 64)
	r.mu.Lock()
	defer r.mu.Unlock()
	if late := now.Sub(time.UnixMilli(at)); err == nil && late > 0 {
		r.late[organization] = lateness{time.Now().Add(-late), time.Now()}
	} else {
		delete(r.late, organization)
	}
}

// lag returns how late the latest is. What it has not seen for a while, another instance has taken over.
func (r *dueRecorder) lag() (lag time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for organization, late := range r.late {
		if time.Since(late.seen) > 2*dueClaim {
			delete(r.late, organization)
			continue
		}
		lag = max(lag, time.Since(late.since))
	}
	return lag
}

// budgetPeriod is what stands for the end of a budget's period; see lua/records/include/due.lua.
const budgetPeriod = "b"

// recordChunks records what chunks name. It returns what is to be looked at again, and the chunks with which that is all.
func (r *dueRecorder) recordChunks(ctx context.Context, organization uuid.UUID, t takenDue) (again string, done []any, err error) {
	var chunks []string
	for _, chunk := range t.chunks {
		if chunk == budgetPeriod {
			if _, err := r.endPeriod(ctx, organization); err != nil {
				return "", nil, err
			}
			continue
		}
		chunks, done = append(chunks, chunk), append(done, chunk)
	}
	entries, err := feed.ReadDue(chunks)
	if err != nil {
		return "", nil, err
	}
	l := &look{dueRecorder: r, organization: organization, now: t.now, until: time.Now().Add(dueTurn), awaited: map[uuid.UUID]bool{}}
	l.at(ctx, entries)
	return l.again.String(), done, ctx.Err()
}

// endPeriod records the end of a budget's period, and returns when the current one ends, in ms since 1970; "" for never.
func (s *Store) endPeriod(ctx context.Context, organization uuid.UUID) (string, error) {
	keys := []string{s.keys.Organization(organization), s.keys.OrganizationBudget(organization), s.keys.Due(organization), s.keys.Events(organization)}
	r, err := s.client.Run(ctx, flow{Owner: organization}, endPeriod, keys, s.core.AuditAs(ctx, kernel.ActorKey))
	if err != nil {
		return "", err
	}
	return r.Text(0), r.Err
}

// recovered keeps a panic in what one organization has stored from ending the process. The claim on it ends by itself.
func (r *dueRecorder) recovered() {
	if cause := recover(); cause != nil && r.config.Log != nil {
		r.config.Log.Error("recording what is due panicked", "cause", cause)
	}
}

package console

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
)

const stopPath = Prefix + "/stop"

// stops are the suspensions and resumptions of all agents that this instance carries out or has just carried out: the last one of
// each organization.
type stops struct {
	mu    sync.Mutex
	known map[uuid.UUID]*stopJob
}

// stopJob suspends or resumes all agents of an organization. The API answers when all of them are, which may take seconds.
type stopJob struct {
	Resume bool
	Began  time.Time
	done   chan struct{} // closed at its end

	ended  time.Time // set before done is closed, like the two that follow
	agents int64     // suspended or resumed
	err    error

	reported bool // its end, to who began it; guarded by the mu of stops
}

const (
	// stopWait is how long a viewer waits for the end. Then the page shows progress.
	stopWait = 2 * time.Second
	// stopShown is how long the end of a job without a waiting viewer is shown.
	stopShown = time.Minute
)

var errStopping = &problem{Status: fasthttp.StatusConflict, Code: "conflict", Detail: "all agents are still being suspended. Resume them when that is done"}

// Running reports whether the job has not ended.
func (j *stopJob) Running() bool {
	select {
	case <-j.done:
		return false
	default:
		return true
	}
}

// begin starts a job, or joins one that does the same. A stop that comes while a resumption runs waits for its end and then suspends
// all, so that the stop has the last word. A resumption that comes while a stop runs is refused.
func (s *stops) begin(organization uuid.UUID, resume bool, now time.Time, do func() (int64, error)) (*stopJob, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.known[organization]
	if before != nil && before.Running() {
		if before.Resume == resume {
			return before, nil
		}
		if resume {
			return nil, errStopping
		}
	}
	maps.DeleteFunc(s.known, func(_ uuid.UUID, j *stopJob) bool { return !j.Running() && now.Sub(j.ended) > stopShown })
	j := &stopJob{Resume: resume, Began: now, done: make(chan struct{})}
	s.known[organization] = j
	go j.run(before, do)
	return j, nil
}

// Wait returns when no stop or resumption is under way any more, or ctx ends.
func (c *Console) Wait(ctx context.Context) {
	c.stops.mu.Lock()
	under := slices.Collect(maps.Values(c.stops.known))
	c.stops.mu.Unlock()
	for _, j := range under {
		select {
		case <-j.done:
		case <-ctx.Done():
		}
	}
}

func (j *stopJob) run(before *stopJob, do func() (int64, error)) {
	defer close(j.done)
	defer func() { j.ended = time.Now() }()
	if before != nil {
		<-before.done
	}
	j.agents, j.err = do()
}

// shown returns the job of an organization that runs, or has ended unseen; nil for none.
func (s *stops) shown(organization uuid.UUID, now time.Time) *stopJob {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.known[organization]
	if j == nil || !j.Running() && (j.reported || now.Sub(j.ended) > stopShown) {
		return nil
	}
	return j
}

func (s *stops) tell(j *stopJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.reported = true
}

// result says how a job ended.
func (c *Console) result(j *stopJob) flash {
	switch {
	case j.err != nil && j.Resume:
		return flash{Failed: true, Text: "Not all agents were resumed. " + c.explain(j.err).text()}
	case j.err != nil:
		return flash{Failed: true, Text: "Not all agents were suspended. " + c.explain(j.err).text()}
	case j.Resume:
		return flash{Text: "All agents are resumed: " + plural(j.agents, "agent", "agents") + "."}
	}
	return flash{Text: "All agents are suspended: " + plural(j.agents, "agent", "agents") + ". None gets a token, charges or begins anything."}
}

func stopAll(v *visit) error {
	body, err := reason.given(v)
	if err != nil {
		return err
	}
	body["all"] = true
	return v.stopOrResume(false, "/v1/agents/suspend", body)
}

func resumeAll(v *visit) error {
	return v.stopOrResume(true, "/v1/agents/resume", map[string]any{"all": true})
}

// stopOrResume begins it, and waits a moment for its end. It goes on when the viewer leaves.
func (v *visit) stopOrResume(resume bool, path string, body map[string]any) error {
	calls := v.api.alone()
	job, err := v.console.stops.begin(v.who.Organization, resume, v.now, func() (agents int64, err error) {
		defer v.console.host.Recover("stop")
		defer func() { v.console.fleets.age(v.who.Organization) }()
		err = errPanicked // unless it returns
		var n struct{ Suspended, Resumed int64 }
		failed := calls.change(fasthttp.MethodPost, path, "", body, &n)
		return n.Suspended + n.Resumed, failed
	})
	if err != nil {
		return err
	}
	select {
	case <-job.done:
	case <-time.After(stopWait):
		return v.done(stopPath, "It is under way.")
	}
	v.console.stops.tell(job)
	if job.err != nil {
		return job.err
	}
	return v.leave(stopPath, v.console.result(job))
}

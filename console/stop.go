package console

import (
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
)

const stopPath = Prefix + "/stop"

// stops are the suspensions and resumptions of all agents that this instance is carrying out, or has just carried out.
type stops struct {
	mu    sync.Mutex
	known map[uuid.UUID]*stopJob
}

// stopJob suspends or resumes all agents of an organization. The API answers when all of them are, which may take seconds.
type stopJob struct {
	Resume bool
	Began  time.Time
	done   chan struct{} // closed at its end
	Agents int64         // suspended or resumed, at its end
	err    error
}

const (
	// stopWait is how long a viewer waits for the end. Then the page shows progress.
	stopWait = 2 * time.Second
	// stopShown is how long a job that has ended is shown.
	stopShown = time.Minute
)

// Running reports whether the job has not ended.
func (j *stopJob) Running() bool {
	select {
	case <-j.done:
		return false
	default:
		return true
	}
}

// begin starts a job, unless the same one runs.
func (s *stops) begin(organization uuid.UUID, resume bool, now time.Time, do func() (int64, error)) *stopJob {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.known[organization]; j != nil && j.Running() && j.Resume == resume {
		return j
	}
	if s.known == nil {
		s.known = map[uuid.UUID]*stopJob{}
	}
	for of, j := range s.known {
		if !j.Running() && now.Sub(j.Began) > stopShown {
			delete(s.known, of)
		}
	}
	j := &stopJob{Resume: resume, Began: now, done: make(chan struct{})}
	s.known[organization] = j
	go func() {
		defer close(j.done)
		j.Agents, j.err = do()
	}()
	return j
}

// running returns the job of an organization that has not ended, nil for none.
func (s *stops) running(organization uuid.UUID) *stopJob {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.known[organization]; j != nil && j.Running() {
		return j
	}
	return nil
}

// stopPage is the switch.
type stopPage struct {
	Live, Suspended int64
	Truncated       bool
	Job             *stopJob // that runs; nil for none
}

func showStop(v *visit) error {
	page := stopPage{Job: v.console.stops.running(v.who.Organization)}
	if page.Job != nil {
		v.forgetFleet()
		v.refresh = true
	}
	all, err := v.fleet()
	if err != nil {
		return err
	}
	for _, a := range all.Agents {
		switch a.State() {
		case statusSuspended:
			page.Suspended++
			page.Live++
		case statusActive:
			page.Live++
		}
	}
	page.Truncated = all.Truncated
	return v.show("stop", "Stop all", page)
}

func stopAll(v *visit) error {
	if err := v.confirmed("stop"); err != nil {
		return err
	}
	body := v.reasonOf()
	body["all"] = true
	return v.stopOrResume(false, "/v1/agents/suspend", body)
}

func resumeAll(v *visit) error {
	if err := v.confirmed("resume"); err != nil {
		return err
	}
	return v.stopOrResume(true, "/v1/agents/resume", map[string]any{"all": true})
}

// stopOrResume begins it, and waits a moment for its end. It goes on when the viewer leaves.
func (v *visit) stopOrResume(resume bool, path string, body map[string]any) error {
	calls := v.api
	calls.ctx = nil // it outlives the request
	job := v.console.stops.begin(v.who.Organization, resume, v.now, func() (int64, error) {
		var n struct{ Suspended, Resumed int64 }
		err := calls.change(fasthttp.MethodPost, path, "", body, &n)
		return n.Suspended + n.Resumed, err
	})
	select {
	case <-job.done:
	case <-time.After(stopWait):
		return v.done(stopPath, "It is under way.")
	}
	v.forgetFleet()
	if job.err != nil {
		return job.err
	}
	if resume {
		return v.done(stopPath, "All agents are resumed: "+plural(job.Agents, "agent", "agents")+".")
	}
	return v.done(stopPath, "All agents are suspended: "+plural(job.Agents, "agent", "agents")+". None gets a token, charges or begins anything.")
}

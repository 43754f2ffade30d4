package faults

import (
	"strings"
	"sync"
	"time"
)

// resources is what instances hold while nobody asks anything of them.
type resources struct {
	goroutines  int // of one instance
	files       int // of all instances
	connections int // of all instances to all Redis servers
}

// goroutinesAtRest returns how many goroutines an instance has that has worked and has nothing to do: one that is started
// for this, and ended by it.
func (s *Scenario) goroutinesAtRest() int {
	i := StartInstance(s.t, s.setup.URL, s.setup.Args...)
	var busy sync.WaitGroup
	for n := range s.setup.Workers {
		busy.Go(func() { s.acknowledges(i, n) })
	}
	busy.Wait()
	s.Caller.Close()
	awaitSteady(i)
	stacks, err := i.Goroutines()
	if err != nil {
		s.t.Errorf("goroutines at rest: %v", err)
	}
	return len(stacks)
}

// steadyTime is how long the number of an instance's open files must stay the same for it to be at rest.
const steadyTime = 200 * time.Millisecond

// awaitSteady returns when the instance has closed the connections that its clients have closed.
func awaitSteady(i *Instance) {
	last, since := -1, time.Now()
	for deadline := time.Now().Add(quietPatience); time.Since(since) < steadyTime && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if n, _ := openFiles(i.PID()); n != last {
			last, since = n, time.Now()
		}
	}
}

// countFiles returns how many file descriptors the instances that run have together.
func (s *Scenario) countFiles() int {
	sum := 0
	for _, i := range s.Instances {
		if n, err := openFiles(i.PID()); err == nil && i.Runs() {
			sum += n
		}
	}
	return sum
}

// countConnections returns how many connections all Redis servers have together, but for our own.
func (s *Scenario) countConnections() (sum int, err error) {
	for _, server := range s.servers {
		clients, err := server.Do(s.t.Context(), "CLIENT", "LIST", "TYPE", "normal").Text()
		if err != nil {
			return 0, err
		}
		sum += listed(clients) - 1
	}
	return sum, nil
}

// listed returns how many clients there are in a list, without the sentinels, which come and go.
func listed(clients string) int {
	n := 0
	for line := range strings.Lines(clients) {
		if !strings.Contains(line, " name=sentinel-") {
			n++
		}
	}
	return n
}

// checkResources waits for the instances to come to rest, and then ends them: those that have worked by asking for their
// goroutines, the others by SIGTERM.
func (s *Scenario) checkResources() []Violation {
	s.Caller.Close()
	out := s.checkOpen()
	for _, i := range s.Instances {
		switch {
		case !i.Runs():
		case s.hasWorked(i):
			out = append(out, s.checkGoroutines(i)...)
		default:
			if err := i.Terminate(); err != nil {
				out = append(out, found(RuleExit, i.URL, "%v", err))
			}
		}
	}
	return out
}

// hasWorked says whether the instance has acknowledged anything since its start: at its address there may have been
// others before.
func (s *Scenario) hasWorked(i *Instance) bool {
	since := i.started.Sub(s.History.begin)
	return s.History.Count(func(c Call) bool { return c.Instance == i.URL && c.Began >= since && c.Outcome == OK }) > 0
}

// checkOpen compares what is open with the baseline. Pools keep the connections that the load needed, so these are bounded
// by their size, and everything else must be as it was.
func (s *Scenario) checkOpen() []Violation {
	for deadline := time.Now().Add(quietPatience); ; time.Sleep(20 * time.Millisecond) {
		var open []Violation
		if connections, err := s.countConnections(); err != nil {
			open = []Violation{found(RuleUnread, "connections to Redis", "%v", err)}
		} else {
			open = judgeOpen(s.baseline, resources{files: s.countFiles(), connections: connections},
				len(s.Instances)*max(1, len(s.servers)))
		}
		if len(open) == 0 || time.Now().After(deadline) {
			return open
		}
	}
}

func judgeOpen(before, now resources, pools int) []Violation {
	var out []Violation
	if now.connections > pools*poolSize {
		out = append(out, found(RuleConns, "Redis", "%d connections, pools hold %d", now.connections, pools*poolSize))
	}
	if left := (now.files - now.connections) - (before.files - before.connections); left > 0 {
		out = append(out, found(RuleFiles, "the service", "%d file descriptors more than before, connections to Redis apart (%+v, now %+v)",
			left, before, now))
	}
	return out
}

func (s *Scenario) checkGoroutines(i *Instance) []Violation {
	awaitSteady(i)
	stacks, err := i.Goroutines()
	if err != nil {
		return []Violation{found(RuleGoroutines, i.URL, "%v", err)}
	}
	if len(stacks) > s.baseline.goroutines {
		return []Violation{found(RuleGoroutines, i.URL, "%d, at rest it was %d:\n%v", len(stacks), s.baseline.goroutines, stacks)}
	}
	return nil
}

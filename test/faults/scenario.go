package faults

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/test/suite"
)

const (
	// RecoveryLimit is how long the service may take to serve again after the end of a fault.
	RecoveryLimit = 5 * time.Second
	// workPatience is how long the fleet may take for the calls that a scenario waits for.
	workPatience = 3 * time.Minute

	defaultInstances = 2
	defaultWorkers   = 12
	agents           = 4
)

// Setup says what a scenario runs on. Only the URL is required.
type Setup struct {
	URL       string   // of Redis, as the instances take it
	Servers   []string // addresses of all Redis servers, to count connections; none: connections are not counted
	Instances int      // of the service; 0: 2
	Workers   int      // of the fleet; 0: 12
	Args      []string // further flags of every instance
}

// Scenario is a fleet that calls instances of the service while a fault is injected. Its steps are, in order: New, faults
// with AwaitAcknowledged between them, AwaitRecovery after each, Finish.
type Scenario struct {
	History   *History
	Fixture   *Fixture
	Caller    *Caller
	Instances []*Instance // a scenario that ends one starts another at the same address

	t        testing.TB
	setup    Setup
	seed     uint64
	fleet    *Workers
	servers  []*redis.Client
	baseline resources
	recovery []time.Duration
}

// New starts the instances, creates the fixture and starts the fleet. All of it ends with the test.
func New(t testing.TB, setup Setup) *Scenario {
	t.Helper()
	setup.Instances, setup.Workers = cmp.Or(setup.Instances, defaultInstances), cmp.Or(setup.Workers, defaultWorkers)
	s := &Scenario{History: NewHistory(), t: t, setup: setup, seed: rand.Uint64()}
	s.Caller = NewCaller(s.History)
	for _, address := range setup.Servers {
		s.servers = append(s.servers, clientOf(t, address))
	}
	for range setup.Instances {
		s.Instances = append(s.Instances, StartInstance(t, setup.URL, setup.Args...))
	}
	s.Fixture = NewFixture(t, s.Caller, s.Instances[0].URL, agents)
	if s.baseline.goroutines = s.goroutinesAtRest(); t.Failed() {
		t.FailNow()
	}
	s.Caller.Close()
	// Redis may still list the connections of the instance that has just ended.
	connections, err := steady(func() (int, error) { return countConnections(t.Context(), s.servers) })
	if err != nil {
		t.Fatalf("connections to Redis: %v", err)
	}
	s.baseline.files, s.baseline.connections = countFiles(s.Instances), connections
	t.Logf("seed %d", s.seed)
	s.StartWorkers()
	s.AwaitAcknowledged(10 * setup.Workers)
	return s
}

// goroutinesAtRest returns the goroutines that an idle instance has after it has served calls. It starts one for this, and
// ends it.
func (s *Scenario) goroutinesAtRest() []string {
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
	return stacks
}

// AwaitAcknowledged returns when so many more calls of the fleet were acknowledged.
func (s *Scenario) AwaitAcknowledged(more int) {
	s.t.Helper()
	acknowledged := func() int { return s.History.Count(func(c Call) bool { return c.Outcome == OK }) }
	want := acknowledged() + more
	for deadline := time.Now().Add(workPatience); acknowledged() < want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the service did not acknowledge %d more calls in %v: %s", more, workPatience, Summary(s.History.Calls()))
		}
	}
}

// AwaitRecovery returns when every running instance acknowledges a charge of every agent. Call it when the fault has ended:
// Violations reports recoveries that took longer than RecoveryLimit. It returns how long the slowest instance took.
func (s *Scenario) AwaitRecovery() time.Duration {
	s.t.Helper()
	over := time.Now()
	slowest := time.Duration(0)
	for _, i := range s.Instances {
		if !i.Runs() {
			continue
		}
		for agent := range s.Fixture.Agents {
			for !s.acknowledges(i, agent) {
				if time.Since(over) > 6*RecoveryLimit {
					s.t.Fatalf("%v after the fault the instance at %s still does not serve agent %d: %s",
						6*RecoveryLimit, i.URL, agent, Summary(s.History.Calls()))
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
		slowest = max(slowest, time.Since(over))
	}
	s.recovery = append(s.recovery, slowest)
	return slowest
}

// acknowledges says whether the instance acknowledges a charge of the nth agent.
func (s *Scenario) acknowledges(i *Instance, n int) bool {
	agent := s.Fixture.Agents[n%len(s.Fixture.Agents)]
	call, _ := s.Caller.Do(i.URL, ChargeSession(agent, agent.Unkeyed, 1, money.MicroUSD(1)))
	return call.Outcome == OK
}

// Restart starts a new instance at the address of the nth, which has ended.
func (s *Scenario) Restart(n int) {
	s.t.Helper()
	arguments := append(slices.Clone(s.setup.Args), "--listen", s.Instances[n].Listen())
	s.Instances[n] = StartInstance(s.t, s.setup.URL, arguments...)
}

// StopWorkers stops the fleet after its workers have finished their current steps.
func (s *Scenario) StopWorkers() { s.fleet.Stop() }

// StartWorkers starts a new fleet, at the beginning and after StopWorkers.
func (s *Scenario) StartWorkers() {
	s.fleet = StartWorkers(s.Fixture, s.Caller, s.urls(), s.setup.Workers, s.seed)
	s.t.Cleanup(s.fleet.Stop)
	s.seed++
}

// urls returns the base URLs of the instances.
func (s *Scenario) urls() (urls []string) {
	for _, i := range s.Instances {
		urls = append(urls, i.URL)
	}
	return urls
}

// Finish stops the fleet, checks every rule, and reports each violation as an error of the test.
func (s *Scenario) Finish() {
	s.t.Helper()
	for _, v := range s.Violations() {
		s.t.Error(v)
	}
}

// Violations stops the fleet, checks every rule, and returns the violations, for scenarios in which some are expected. It
// ends the instances.
func (s *Scenario) Violations() []Violation {
	s.t.Helper()
	s.StopWorkers()
	var out []Violation
	at := s.Instances[len(s.Instances)-1].URL
	if unanswered := s.Fixture.UseRevoked(s.Caller, at); unanswered > 0 {
		out = append(out, violationOf(RuleUnread, "what was revoked or ended", "%d calls were not answered", unanswered))
	}
	stored, err := s.Fixture.Stored(s.Caller, at)
	if err != nil {
		out = append(out, violationOf(RuleUnread, "what is stored", "%v", err))
	} else {
		out = append(out, Check(s.History.Calls(), stored)...)
	}
	for _, took := range s.recovery {
		if took > RecoveryLimit {
			out = append(out, violationOf(RuleRecovery, "the service", "%v after the fault, want %v", took, RecoveryLimit))
		}
	}
	out = append(out, s.checkResources()...)
	s.t.Logf("%s; recovery %v", Summary(s.History.Calls()), s.recovery)
	return out
}

// checkResources waits until the instances are idle, and then ends them: with SIGQUIT those that have served calls, to see
// their goroutines, and the others with SIGTERM.
func (s *Scenario) checkResources() []Violation {
	s.Caller.Close()
	out := checkOpen(s.t.Context(), s.baseline, s.Instances, s.servers)
	for _, i := range s.Instances {
		switch {
		case !i.Runs():
		case s.hasWorked(i):
			out = append(out, checkGoroutines(i, s.baseline.goroutines)...)
		default:
			if err := i.Terminate(); err != nil {
				out = append(out, violationOf(RuleExit, i.URL, "%v", err))
			}
		}
	}
	return out
}

// hasWorked says whether the instance has acknowledged a call since its start. Others may have had its address before.
func (s *Scenario) hasWorked(i *Instance) bool {
	since := i.started.Sub(s.History.begin)
	return s.History.Count(func(c Call) bool { return c.Instance == i.URL && c.Began >= since && c.Outcome == OK }) > 0
}

// waitUntil polls the condition until it holds, and fails the test after the limit.
func waitUntil(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	waitEvery(t, 5*time.Millisecond, limit, what, condition)
}

// waitEvery is waitUntil with another pause between two looks.
func waitEvery(t testing.TB, pause, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("not in %v: %s", limit, what)
		}
	}
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

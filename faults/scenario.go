package faults

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/money"
)

const (
	// RecoveryLimit is how long the service may take, once a fault is over, until it answers as before.
	RecoveryLimit = 5 * time.Second
	// quietPatience is how long what was opened under load may take to be closed after it.
	quietPatience = 15 * time.Second
	// workPatience is how long the fleet may take for the calls that a scenario waits for.
	workPatience = 3 * time.Minute
	// poolSize is how many connections an instance keeps to a Redis server at the most.
	poolSize = 64 + 10 // 10 for pipelines alone

	defaultInstances = 2
	defaultWorkers   = 12
	agents           = 4
)

// Setup says what a scenario runs on. Only the URL is needed.
type Setup struct {
	URL       string   // of Redis, as the instances take it
	Servers   []string // addresses of all Redis servers, to count connections; none: they are not counted
	Instances int      // of the service; 0: 2
	Workers   int      // of the fleet; 0: 12
	Args      []string // further flags of every instance
}

// Scenario is a fleet at work on instances of the service. Its steps are, in order: New, some faults with Acknowledged or
// time between them, FaultOver when they are over, Finish.
type Scenario struct {
	History   *History
	World     *World
	Caller    *Caller
	Instances []*Instance // a scenario that ends one puts another in its place, at the same address

	t        testing.TB
	setup    Setup
	seed     uint64
	fleet    *Fleet
	servers  []*redis.Client
	baseline resources
	recovery []time.Duration
}

// New starts the instances, builds the world and sets the fleet to work. All of it ends with the test.
func New(t testing.TB, setup Setup) *Scenario {
	t.Helper()
	setup.Instances, setup.Workers = orDefault(setup.Instances, defaultInstances), orDefault(setup.Workers, defaultWorkers)
	s := &Scenario{History: NewHistory(), t: t, setup: setup, seed: rand.Uint64()}
	s.Caller = NewCaller(s.History)
	for _, address := range setup.Servers {
		s.servers = append(s.servers, clientOf(t, address))
	}
	for range setup.Instances {
		s.Instances = append(s.Instances, StartInstance(t, setup.URL, setup.Args...))
	}
	s.World = NewWorld(t, s.Caller, s.Instances[0].URL, agents)
	if s.baseline.goroutines = s.goroutinesAtRest(); t.Failed() {
		t.FailNow()
	}
	s.Caller.Close()
	connections, err := s.countConnections()
	if err != nil {
		t.Fatalf("connections to Redis: %v", err)
	}
	s.baseline.files, s.baseline.connections = s.countFiles(), connections
	t.Logf("seed %d", s.seed)
	s.Resume()
	s.Acknowledged(10 * setup.Workers)
	return s
}

func orDefault(given, standard int) int {
	if given == 0 {
		return standard
	}
	return given
}

// Acknowledged returns when the fleet has been told OK so many times more.
func (s *Scenario) Acknowledged(more int) {
	s.t.Helper()
	acknowledged := func() int { return s.History.Count(func(c Call) bool { return c.Outcome == OK }) }
	want := acknowledged() + more
	for deadline := time.Now().Add(workPatience); acknowledged() < want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the fleet was not acknowledged %d more calls in %v: %s", more, workPatience, Summary(s.History.Calls()))
		}
	}
}

// FaultOver is called when the fault has ended: every instance that runs must acknowledge a charge of every agent within
// RecoveryLimit. It returns how long the slowest took.
func (s *Scenario) FaultOver() time.Duration {
	s.t.Helper()
	over := time.Now()
	slowest := time.Duration(0)
	for _, i := range s.Instances {
		if !i.Runs() {
			continue
		}
		for agent := range s.World.Agents {
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
	agent := s.World.Agents[n%len(s.World.Agents)]
	call, _ := s.Caller.Do(i.URL, ChargeSession(agent, agent.Unkeyed, 1, money.MicroUSD(1)))
	return call.Outcome == OK
}

// Restart starts an instance in the place of one that has ended, at the same address.
func (s *Scenario) Restart(n int) {
	s.t.Helper()
	arguments := append(slices.Clone(s.setup.Args), "--listen", s.Instances[n].Listen())
	s.Instances[n] = StartInstance(s.t, s.setup.URL, arguments...)
}

// Rest stops the fleet: its workers finish what they are at.
func (s *Scenario) Rest() { s.fleet.Stop() }

// Resume sets a fleet to work, at the beginning and after Rest.
func (s *Scenario) Resume() {
	var urls []string
	for _, i := range s.Instances {
		urls = append(urls, i.URL)
	}
	s.fleet = StartFleet(s.World, s.Caller, urls, s.setup.Workers, s.seed)
	s.t.Cleanup(s.fleet.Stop)
	s.seed++
}

// Finish stops the fleet, checks everything, and fails the test for every violation.
func (s *Scenario) Finish() {
	s.t.Helper()
	for _, v := range s.Violations() {
		s.t.Error(v)
	}
}

// Violations stops the fleet, checks everything, and returns what is wrong, for a scenario in which something must be.
// The instances have ended then.
func (s *Scenario) Violations() []Violation {
	s.t.Helper()
	s.Rest()
	var out []Violation
	at := s.Instances[len(s.Instances)-1].URL
	if unanswered := s.World.UseDead(s.Caller, at); unanswered > 0 {
		out = append(out, found(RuleUnread, "what was revoked or ended", "%d uses were not answered", unanswered))
	}
	stored, err := s.World.Stored(s.Caller, at)
	if err != nil {
		out = append(out, found(RuleUnread, "what is stored", "%v", err))
	} else {
		out = append(out, Check(s.History.Calls(), stored)...)
	}
	for _, took := range s.recovery {
		if took > RecoveryLimit {
			out = append(out, found(RuleRecovery, "the service", "%v after the fault, want %v", took, RecoveryLimit))
		}
	}
	out = append(out, s.checkResources()...)
	s.t.Logf("%s; recovery %v", Summary(s.History.Calls()), rounded(s.recovery))
	return out
}

func rounded(all []time.Duration) []time.Duration {
	var out []time.Duration
	for _, d := range all {
		out = append(out, d.Round(time.Millisecond))
	}
	return out
}

// Summary says in a line how many calls had which outcome, and why those without one had none.
func Summary(calls []Call) string {
	outcomes, codes := map[Outcome]int{}, map[string]int{}
	for _, c := range calls {
		outcomes[c.Outcome]++
		switch {
		case c.Outcome == OK:
		case c.Code != "":
			codes[c.Code]++
		case c.Status != 0:
			codes[fmt.Sprint(c.Status)]++
		default:
			codes["no answer"]++
		}
	}
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		parts = append(parts, fmt.Sprintf("%s %d", code, codes[code]))
	}
	return fmt.Sprintf("%d calls: %d ok, %d refused, %d unknown (%s)", len(calls),
		outcomes[OK], outcomes[Refused], outcomes[Unknown], strings.Join(parts, ", "))
}

package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"remit/client"
	"remit/money"
	"remit/test/serviceproc"
)

const (
	// holderVariable makes the test binary a holder of a lease instead of a test.
	holderVariable = "REMIT_FAULTS_HOLDER"
	// holderLease is how long a holder may spend without asking.
	holderLease = 2 * time.Second
	// holderPause is the time between two charges of a holder.
	holderPause = time.Millisecond
	// holderValue is what each of its charges costs.
	holderValue money.MicroUSD = 7
)

// What a holder prints: a line for each charge.
const (
	lineGranted = "granted"
	lineUnknown = "unknown" // the charge went to the session, and its outcome is unknown
	lineLimit   = "limit"   // the session is used up
	lineRefused = "refused" // not charged for another reason
	lineClosed  = "closed"  // and why that failed
)

// holdLease charges a lease of the session in the environment until the input ends, and then closes it. It returns the exit
// code.
func holdLease(input io.Reader, output io.Writer) int {
	session, err := client.SessionFromEnv(client.Options{})
	if err != nil {
		fmt.Fprintln(output, lineRefused, err)
		return 1
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, input)
		close(ended)
	}()
	lease, err := session.Lease(context.Background(), client.LeaseOptions{ExpiresIn: holderLease})
	for ; err != nil; lease, err = session.Lease(context.Background(), client.LeaseOptions{ExpiresIn: holderLease}) {
		fmt.Fprintln(output, lineRefused, err)
		if isDone(ended, 10*holderPause) {
			return 0
		}
	}
	for !isDone(ended, holderPause) {
		err := lease.Charge(context.Background(), client.Charge{Value: holderValue})
		fmt.Fprintln(output, lineOf(err))
	}
	err = lease.Close(context.Background())
	fmt.Fprintln(output, lineClosed, err)
	return 0
}

func isDone(ended <-chan struct{}, within time.Duration) bool {
	select {
	case <-ended:
		return true
	case <-time.After(within):
		return false
	}
}

// lineOf is what a holder prints about a charge.
func lineOf(err error) string {
	var limit *client.LimitReached
	switch {
	case err == nil:
		return lineGranted
	case errors.Is(err, client.ErrOutcomeUnknown):
		return lineUnknown
	case errors.As(err, &limit):
		return lineLimit
	default:
		return lineRefused + " " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
}

// Holder is a process that holds a lease, and charges it as fast as it may.
type Holder struct {
	*serviceproc.Process
	input io.Closer
}

// startHolder starts a holder that uses the instance.
func startHolder(t testing.TB, instance string, agent *Agent, session string) *Holder {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := serviceproc.StartProcess(cmd, holderVariable+"=1", "REMIT_ADDR="+instance, "REMIT_AGENT="+agent.ID,
		"REMIT_SECRET="+agent.Secret, "REMIT_SESSION="+session, "GORACE=halt_on_error=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return &Holder{p, input}
}

// count returns how many lines of the kind it has printed. A line that a kill cut off does not count.
func (h *Holder) count(kind string) (n int64) {
	for lines := bufio.NewScanner(strings.NewReader(h.Stdout())); lines.Scan(); {
		if line, _, _ := strings.Cut(lines.Text(), " "); line == kind {
			n++
		}
	}
	return n
}

// close makes the holder close its lease, and returns an error if that fails.
func (h *Holder) close() error {
	_ = h.input.Close() // fails only when the process has ended, which Wait reports
	if err := h.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, h.Stderr())
	}
	if !strings.HasSuffix(h.Stdout(), lineClosed+" <nil>\n") {
		return errors.New(h.Stdout()[max(0, len(h.Stdout())-200):])
	}
	return nil
}

// Holders are processes that share a session by leases. Their totals are checked apart from the fleet's, because only they
// know what they charged.
type Holders struct {
	s       *Scenario
	agent   *Agent
	session string
	all     []*Holder // also the killed ones
	live    []*Holder
}

// StartHolders starts so many holders of a session of its own. Each uses another instance.
func (s *Scenario) StartHolders(n int, maxActions int64) *Holders {
	s.t.Helper()
	_, body := s.Caller.Do(s.Instances[0].URL, s.Fixture.createAgent())
	made := created(body)
	h := &Holders{s: s, agent: &Agent{ID: made.ID, Secret: made.Secret}}
	r := s.Fixture.createSession(made.ID, maxActions, money.MicroUSD(maxActions)*holderValue*2)
	call, body := s.Caller.Do(s.Instances[0].URL, r)
	if h.session = created(body).ID; call.Outcome != OK {
		s.t.Fatalf("session of the holders: %d %s", call.Status, body)
	}
	for range n {
		h.start()
	}
	h.AwaitGranted(10 * n)
	return h
}

func (h *Holders) start() {
	instance := h.s.Instances[len(h.all)%len(h.s.Instances)].URL
	started := startHolder(h.s.t, instance, h.agent, h.session)
	h.all, h.live = append(h.all, started), append(h.live, started)
}

// Kill kills a holder that has just charged its lease, and starts another.
func (h *Holders) Kill() {
	h.s.t.Helper()
	doomed := h.live[0]
	granted := doomed.count(lineGranted)
	h.await("the holder to kill charges", func() bool { return doomed.count(lineGranted) > granted })
	doomed.Kill()
	h.live = h.live[1:]
	h.start()
}

func (h *Holders) count(kind string) (n int64) {
	for _, holder := range h.all {
		n += holder.count(kind)
	}
	return n
}

// AwaitGranted returns when holders have granted so many more charges.
func (h *Holders) AwaitGranted(more int) {
	h.s.t.Helper()
	want := h.count(lineGranted) + int64(more)
	h.await("holders charge", func() bool { return h.count(lineGranted) >= want })
}

// AwaitUsedUp returns when the session has refused every live holder.
func (h *Holders) AwaitUsedUp() {
	h.s.t.Helper()
	for _, holder := range h.live {
		h.await("the session's limit is reached", func() bool { return holder.count(lineLimit) > 0 })
	}
}

func (h *Holders) await(what string, is func() bool) {
	h.s.t.Helper()
	waitEvery(h.s.t, 20*time.Millisecond, workPatience, what, is) // each look reads all that they have printed
}

// Finish closes all leases, waits until those of killed holders have expired, and checks the totals. It returns them.
func (h *Holders) Finish() (fact leaseFact) {
	h.s.t.Helper()
	for _, holder := range h.live {
		if err := holder.close(); err != nil {
			h.s.t.Errorf("a holder did not close its lease: %v", err)
		}
	}
	r := reader{caller: h.s.Caller, instance: h.s.Instances[0].URL, key: h.s.Fixture.APIKey}
	h.await("the killed holders' leases end", func() bool {
		return !r.get("/sessions/"+h.session, &fact.stored) || fact.stored.Held == 0
	})
	fact.trail = r.readTrail(h.agent.ID)
	if r.err != nil {
		h.s.t.Fatal(r.err)
	}
	fact.granted, fact.unknown, fact.killed = h.count(lineGranted), h.count(lineUnknown), len(h.all)-len(h.live)
	for _, v := range checkLeases(h.session, fact) {
		h.s.t.Error(v)
	}
	settled, unsettled, lost := fact.booked()
	h.s.t.Logf("holders: %d charges granted, %d unknown, %d refused, %d beyond the limit; leases settled with %+v, %d unsettled with %+v; stored %+v",
		fact.granted, fact.unknown, h.count(lineRefused), h.count(lineLimit), settled, lost, unsettled, fact.stored)
	return fact
}

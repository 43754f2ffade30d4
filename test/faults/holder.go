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

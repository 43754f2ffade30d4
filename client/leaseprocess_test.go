package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"remit/client"
)

// holderVariable makes the test binary a holder of a lease instead of a test.
const holderVariable = "REMIT_TEST_HOLDER"

// holdLease charges a lease of the session in the environment once for each line that it reads, and prints the outcomes.
func holdLease() {
	session, err := client.SessionFromEnv(client.Options{})
	if err != nil {
		panic(err)
	}
	lease, err := session.Lease(context.Background(), client.LeaseOptions{})
	fmt.Println("open:", err)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println("charge:", lease.Charge(context.Background(), client.Charge{}))
	}
}

// holder is a process that holds a lease.
type holder struct {
	t      *testing.T
	cmd    *exec.Cmd
	input  io.Writer
	output *bufio.Scanner
}

// startHolder starts a process with a lease of a session of 1000 actions.
func startHolder(t *testing.T, longest time.Duration) (*holder, *client.Organization, *client.Session) {
	t.Helper()
	o := organization()
	agent, err := o.CreateAgent(t.Context(), client.AgentParams{Name: "scout"})
	if err != nil {
		t.Fatal(err)
	}
	session := sessionOf(o, remit().Agent(agent.ID, string(agent.Secret)), client.SessionParams{MaxActions: 1000, MaxLease: longest})
	h := &holder{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	h.cmd.Env = append(os.Environ(), holderVariable+"=1", "REMIT_ADDR="+startedService().url, "REMIT_AGENT="+agent.ID,
		"REMIT_SECRET="+string(agent.Secret), "REMIT_SESSION="+session.ID())
	h.cmd.Stderr = os.Stderr
	h.input, _ = h.cmd.StdinPipe()
	output, _ := h.cmd.StdoutPipe()
	h.output = bufio.NewScanner(output)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.cmd.Process.Kill()
		h.cmd.Wait()
	})
	if said := h.reads(); said != "open: <nil>" {
		t.Fatal(said)
	}
	return h, o, session
}

func (h *holder) reads() string {
	h.t.Helper()
	if !h.output.Scan() {
		h.t.Fatal("the holder ended")
	}
	return h.output.Text()
}

func (h *holder) charges() string {
	h.t.Helper()
	fmt.Fprintln(h.input)
	return h.reads()
}

func (h *holder) signal(s os.Signal) {
	h.t.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		h.t.Fatal(err)
	}
}

// A process that was stopped until after its lease had expired spends nothing of it.
func TestAHolderThatWasStoppedSpendsNothingAfterTheExpiry(t *testing.T) {
	t.Parallel()
	const longest = 3 * time.Second
	h, o, session := startHolder(t, longest)
	if said := h.charges(); said != "charge: <nil>" {
		t.Error(said)
	}
	h.signal(syscall.SIGSTOP)
	stopped := time.Now()
	if err := o.EndSession(t.Context(), session.ID()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(stopped.Add(longest))) // its clock cannot be set
	h.signal(syscall.SIGCONT)
	if said := h.charges(); !strings.Contains(said, "session_not_active") {
		t.Error(said)
	}
}

// What a killed process held counts as spent: at least what it charged, and no more than the limit.
func TestWhatAKilledHolderHeldCountsAsSpent(t *testing.T) {
	t.Parallel()
	h, _, session := startHolder(t, 2*time.Second)
	const charged = 100
	for range charged {
		if said := h.charges(); said != "charge: <nil>" {
			t.Error(said)
		}
	}
	h.signal(syscall.SIGKILL)
	h.cmd.Wait()
	left := chargeUntilRefusedBySession(t, session)
	held := 1000 - charged - left
	if held < 0 || held > 300 {
		t.Errorf("%d charged by the killed holder and %d by another, of 1000", charged, left)
	}
	if now, err := session.Get(t.Context()); err != nil || now.ActionCount != 1000 {
		t.Errorf("%+v, %v", now, err)
	}
}

func chargeUntilRefusedBySession(t *testing.T, session *client.Session) (n int) {
	t.Helper()
	for ; ; n++ {
		_, err := session.Charge(t.Context(), client.Charge{})
		var limit *client.LimitReached
		if errors.As(err, &limit) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

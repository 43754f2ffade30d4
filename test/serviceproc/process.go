package serviceproc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// stopTime bounds how long a process may take to end after SIGTERM. Then it is killed.
	stopTime = 15 * time.Second
	// startTime bounds how long a process may take to be ready.
	startTime = 30 * time.Second // under the race detector, on a busy machine
)

// Process is a started program and its output so far.
type Process struct {
	cmd    *exec.Cmd
	stdout Output
	stderr Output
	output Output        // both, as they came
	ended  chan struct{} // closed once err is set
	err    error         // of cmd.Wait
}

// StartProcess starts the program in its own process group. Its environment is PATH, TMPDIR and the settings (NAME=value).
// On Linux the kernel kills the program when the tests end, even if they are killed. A standard error that cmd redirects is
// not collected.
func StartProcess(cmd *exec.Cmd, settings ...string) (*Process, error) {
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, settings...)
	cmd.Stdout = io.MultiWriter(&p.stdout, &p.output)
	if cmd.Stderr == nil {
		cmd.Stderr = io.MultiWriter(&p.stderr, &p.output)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run starts the process and waits for its end on one thread, because Linux kills the process when that thread ends.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	close(p.ended)
}

// Output returns what the process has printed so far, to both streams.
func (p *Process) Output() string { return p.output.String() }

// Stdout returns what the process has written to standard output so far.
func (p *Process) Stdout() string { return p.stdout.String() }

// Stderr returns what the process has written to standard error so far.
func (p *Process) Stderr() string { return p.stderr.String() }

// PID returns the process's id. Another process may have it once this one has ended.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.ended }

// Runs says whether the process has not ended yet.
func (p *Process) Runs() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

var errEnded = errors.New("the process has ended")

// Signal sends the process a signal. It is an error when the process has ended.
func (p *Process) Signal(signal os.Signal) error {
	if !p.Runs() {
		return errEnded
	}
	return p.cmd.Process.Signal(signal)
}

// Wait waits until the process has ended and returns how, as exec.Cmd.Wait does: nil for exit status 0.
func (p *Process) Wait() error {
	<-p.ended
	return p.err
}

// State says how the process ended. It is nil until then.
func (p *Process) State() *os.ProcessState {
	if p.Runs() {
		return nil
	}
	return p.cmd.ProcessState
}

// Kill ends the process as a power cut would, and returns when it has ended.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL) // fails only when the process has already ended
	<-p.ended
}

// Stop sends SIGTERM and waits until the process has ended. It is an error when the process does not exit with 0.
func (p *Process) Stop() error {
	_ = p.Signal(syscall.SIGTERM) // fails only when the process has already ended
	select {
	case <-p.ended:
	case <-time.After(stopTime):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // with its children, which share its group
		<-p.ended
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("%s did not exit with 0: %v\n%s", p.cmd.Path, p.cmd.ProcessState, p.Output())
	}
	return nil
}

// Await waits until the condition holds. It is an error when the process ends first, or after 30 s.
func (p *Process) Await(condition func() bool) error {
	for deadline := time.Now().Add(startTime); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: %v\n%s", p.cmd.Path, p.cmd.ProcessState, p.Output())
		default:
		}
	}
	return fmt.Errorf("%s is not ready after %v\n%s", p.cmd.Path, startTime, p.Output())
}

// Output collects what a running program prints. It is safe for concurrent use.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write never fails.
func (b *Output) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *Output) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

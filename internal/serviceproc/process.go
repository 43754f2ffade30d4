package serviceproc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// stopPatience is how long a process may take to end in order before it is killed.
	stopPatience = 15 * time.Second
	// startPatience is how long it may take to be ready.
	startPatience = 30 * time.Second // under the race detector, on a busy machine
)

// Process is a program that was started, and what it has printed so far.
type Process struct {
	cmd    *exec.Cmd
	output Output
	ended  chan struct{} // closed when the process has been waited for
}

// StartProcess starts the program in a process group of its own. Of the environment of the tests it gets PATH and TMPDIR
// only. Settings are NAME=value. On Linux the kernel kills the program when the tests end, even if they are killed.
func StartProcess(cmd *exec.Cmd, settings ...string) (*Process, error) {
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, settings...)
	cmd.Stdout, cmd.Stderr = &p.output, &p.output
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
	_ = p.cmd.Wait() // ProcessState has the error too
	close(p.ended)
}

// Output returns what the process has printed so far.
func (p *Process) Output() string { return p.output.String() }

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

// Signal sends a signal to the process. It is an error when the process has ended.
func (p *Process) Signal(s syscall.Signal) error {
	if !p.Runs() {
		return errEnded
	}
	return p.cmd.Process.Signal(s)
}

var errEnded = errors.New("the process has ended")

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

// Stop ends the process, by its id, and returns when it has ended. It is an error when the process does not exit with 0.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only when the process has already ended
	select {
	case <-p.ended:
	case <-time.After(stopPatience):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // with its workers: they share its group
		<-p.ended
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("%s did not end in order: %v\n%s", p.cmd.Path, p.cmd.ProcessState, p.Output())
	}
	return nil
}

// Await returns when the condition holds, or an error when the process ends first or takes more than 30 s.
func (p *Process) Await(condition func() bool) error {
	for deadline := time.Now().Add(startPatience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: %v\n%s", p.cmd.Path, p.cmd.ProcessState, p.Output())
		default:
		}
	}
	return fmt.Errorf("%s is not ready after %v\n%s", p.cmd.Path, startPatience, p.Output())
}

// Output is what a running program has printed so far. It is safe for concurrent use.
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

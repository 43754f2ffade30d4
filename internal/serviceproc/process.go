package serviceproc

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	// stopTime bounds how long a process may take to end after SIGTERM. Then it is killed.
	stopTime = 15 * time.Second
	// startTime bounds how long a process may take to be ready.
	startTime = 20 * time.Second
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
// A standard error that cmd redirects is not collected.
func StartProcess(cmd *exec.Cmd, settings ...string) (*Process, error) {
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, settings...)
	cmd.Stdout = io.MultiWriter(&p.stdout, &p.output)
	if cmd.Stderr == nil {
		cmd.Stderr = io.MultiWriter(&p.stderr, &p.output)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Output returns what the process has printed so far, to both streams.
func (p *Process) Output() string { return p.output.String() }

// Stdout returns what the process has written to standard output so far.
func (p *Process) Stdout() string { return p.stdout.String() }

// Stderr returns what the process has written to standard error so far.
func (p *Process) Stderr() string { return p.stderr.String() }

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends the process a signal. It is an error when the process has ended.
func (p *Process) Signal(signal os.Signal) error { return p.cmd.Process.Signal(signal) }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait waits until the process has ended and returns how, as exec.Cmd.Wait does: nil for exit status 0.
func (p *Process) Wait() error {
	<-p.ended
	return p.err
}

// Stop sends SIGTERM and waits until the process has ended. It is an error when the process does not exit with 0.
func (p *Process) Stop() error {
	_ = p.Signal(syscall.SIGTERM) // fails only when the process has ended already
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

// Await waits until the condition holds. It is an error when the process ends first, or after 20 s.
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

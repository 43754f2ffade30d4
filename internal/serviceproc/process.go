package serviceproc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	// stopPatience is how long a process may take to end in order before it is killed.
	stopPatience = 15 * time.Second
	// startPatience is how long it may take to be ready.
	startPatience = 20 * time.Second
)

// Process is a program that was started, and what it has printed so far.
type Process struct {
	cmd    *exec.Cmd
	output Output
	ended  chan struct{} // closed when the process has been waited for
}

// StartProcess starts the program in a process group of its own, with none of the settings of whoever runs the tests but
// PATH and TMPDIR. Settings are NAME=value.
func StartProcess(cmd *exec.Cmd, settings ...string) (*Process, error) {
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, settings...)
	cmd.Stdout, cmd.Stderr = &p.output, &p.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // what it returns, ProcessState says too
		close(p.ended)
	}()
	return p, nil
}

// Output returns what the process has printed so far.
func (p *Process) Output() string { return p.output.String() }

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop ends the process, by its id, and returns when it has ended. It is an error when the process does not exit with 0.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only when the process has ended, which is what it is for
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

// Await returns when the condition holds, or with an error when the process ends or 20 s are over before that.
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

package interop

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stopPatience is how long a process may take to end in order before it is killed.
const stopPatience = 15 * time.Second

// process is a program that was started, and what it has printed so far.
type process struct {
	cmd    *exec.Cmd
	output *lockedBuffer
	ended  chan struct{} // closed when the process has been waited for
}

// startProcess starts the program in a process group of its own, with none of the settings of whoever runs the tests.
func startProcess(cmd *exec.Cmd, settings ...string) (*process, error) {
	p := &process{cmd: cmd, output: new(lockedBuffer), ended: make(chan struct{})}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, settings...)
	cmd.Stdout, cmd.Stderr = p.output, p.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		cmd.Wait() // what it returns, ProcessState says too
		close(p.ended)
	}()
	return p, nil
}

// stop ends the process, by its id, and returns when it has ended.
func (p *process) stop() error {
	// A signal fails only when the process has ended, which is what it is for.
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopPatience):
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // with its workers: they share its group
		<-p.ended
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("%s did not end in order: %v\n%s", p.cmd.Path, p.cmd.ProcessState, p.output)
	}
	return nil
}

// await returns when the condition holds, or with an error when the process ends or time runs out before that.
func (p *process) await(condition func() bool) error {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: %v\n%s", p.cmd.Path, p.cmd.ProcessState, p.output)
		default:
		}
	}
	return fmt.Errorf("%s is not ready after 20 s\n%s", p.cmd.Path, p.output)
}

// lockedBuffer is what a running program has printed so far.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// tool returns the path of a program that the tests need. Where it is missing the test fails, or skips under -short.
func tool(t *testing.T, name string) string {
	t.Helper()
	for _, candidate := range []string{name, "/usr/sbin/" + name} { // Debian keeps servers out of a user's PATH
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	if testing.Short() {
		t.Skipf("%s is not installed", name)
	}
	t.Fatalf("%s is not installed; scripts/install-tools.sh installs it", name)
	return ""
}

func currentUser(t *testing.T) string {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return me.Username
}

// indented sets what a program has printed apart from the test's own words.
func indented(output []byte) string {
	return "    | " + strings.ReplaceAll(strings.TrimSpace(string(output)), "\n", "\n    | ")
}

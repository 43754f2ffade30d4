package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"remit/redisproc"
)

const (
	// startPatience is how long an instance may take to listen: under the race detector, on a busy machine.
	startPatience = 30 * time.Second
	// graceTime is how long an instance that is told to stop waits for what it is at.
	graceTime = 10 * time.Second
	// ExitLimit is how long an instance may take to end after SIGTERM: its grace time and a little.
	ExitLimit = graceTime + 2*time.Second
)

// built is the program, compiled once for all tests, with the race detector if they have it.
var built = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(scratch, "remit")
	arguments := []string{"build", "-o", binary}
	if raceDetector {
		arguments = append(arguments, "-race")
	}
	build := exec.Command("go", append(arguments, "remit")...)
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the service does not build: %w\n%s", err, output)
	}
	return binary, nil
})

// scratch holds what the tests compile.
var scratch string

// Main runs the tests of the package, and removes what they have compiled. TestMain calls it.
func Main(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "remit-faults-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	return m.Run()
}

// Instance is a running process of the service.
type Instance struct {
	URL string // base URL

	cmd     *exec.Cmd
	started time.Time
	output  *output
	ended   chan struct{} // closed when the process has been waited for
}

// StartInstance runs the service on the Redis at the URL until the test ends, and returns when it listens. The arguments
// are further flags; without --listen among them it takes a free port.
func StartInstance(t testing.TB, redisURL string, args ...string) *Instance {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	port, err := redisproc.FreePort() // no connection takes it while an instance is restarted, as it may one that the system chose
	if err != nil {
		t.Fatal(err)
	}
	i := &Instance{cmd: exec.Command(binary, args...), started: time.Now(), output: &output{}, ended: make(chan struct{})}
	i.cmd.Dir = t.TempDir()
	// A race ends the process at once: what it does after is worth nothing.
	i.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "REMIT_REDIS_URL=" + redisURL, "REMIT_LISTEN=127.0.0.1:" + strconv.Itoa(port),
		"REMIT_RATE_LIMITS=off", "GORACE=halt_on_error=1", "GOMEMLIMIT=900MiB"} // the limit is that of deploy/kubernetes
	i.cmd.Stdout, i.cmd.Stderr = i.output, i.output
	i.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(i.cmd.SysProcAttr)
	started := make(chan error)
	go i.run(started)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		i.Kill()
		if strings.Contains(i.Output(), "DATA RACE") || strings.Contains(i.Output(), "panic:") {
			t.Errorf("the instance at %s printed:\n%s", i.URL, i.Output())
		}
	})
	if err := i.listens(); err != nil {
		t.Fatal(err)
	}
	return i
}

// run starts the process and stays until it has ended, on one thread: with that thread Linux would end the process.
func (i *Instance) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := i.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	_ = i.cmd.Wait() // what it returns, ProcessState says too
	close(i.ended)
}

var listening = regexp.MustCompile(`msg=listening url=(http://\S+)`)

// listens returns once the instance says where it listens.
func (i *Instance) listens() error {
	for deadline := time.Now().Add(startPatience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if said := listening.FindStringSubmatch(i.Output()); said != nil {
			i.URL = said[1]
			return nil
		}
		if !i.Runs() {
			break
		}
	}
	return fmt.Errorf("the service does not listen: %v\n%s", i.cmd.ProcessState, i.Output())
}

// PID returns the process id. It may be another process's once the instance has ended.
func (i *Instance) PID() int { return i.cmd.Process.Pid }

// Listen returns the address it listens on, for another instance in its place: "--listen", i.Listen().
func (i *Instance) Listen() string { return strings.TrimPrefix(i.URL, "http://") }

// Output returns what the process has printed so far.
func (i *Instance) Output() string { return i.output.String() }

// Runs says whether the process has not ended yet.
func (i *Instance) Runs() bool {
	select {
	case <-i.ended:
		return false
	default:
		return true
	}
}

// Kill ends the process as a power cut would, and returns when it has ended.
func (i *Instance) Kill() {
	_ = i.signal(syscall.SIGKILL) // fails only when it has ended already
	<-i.ended
}

// Terminate asks the process to stop, waits for that, and returns what was wrong with how it ended.
func (i *Instance) Terminate() error {
	if err := i.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-i.ended:
	case <-time.After(ExitLimit):
		return fmt.Errorf("it had not ended %v after SIGTERM", ExitLimit)
	}
	if !i.cmd.ProcessState.Success() {
		return fmt.Errorf("it ended with %v:\n%s", i.cmd.ProcessState, i.Output())
	}
	return nil
}

var errEnded = errors.New("the instance has ended")

func (i *Instance) signal(s syscall.Signal) error {
	if !i.Runs() {
		return errEnded
	}
	return i.cmd.Process.Signal(s)
}

// Goroutines ends the process with SIGQUIT, at which the Go runtime prints every goroutine's stack, and returns these.
// Left out are the workers of the HTTP server that are kept for the next connection.
func (i *Instance) Goroutines() ([]string, error) {
	if err := i.signal(syscall.SIGQUIT); err != nil {
		return nil, err
	}
	select {
	case <-i.ended:
	case <-time.After(ExitLimit):
		return nil, fmt.Errorf("it had not ended %v after SIGQUIT", ExitLimit)
	}
	return goroutinesIn(i.Output()), nil
}

var goroutineHeader = regexp.MustCompile(`(?m)^goroutine [1-9]\d* .*\[`)

// goroutinesIn returns the stacks in a dump of the Go runtime.
func goroutinesIn(dump string) []string {
	var stacks []string
	places := goroutineHeader.FindAllStringIndex(dump, -1)
	for n, place := range places {
		end := len(dump)
		if n+1 < len(places) {
			end = places[n+1][0]
		}
		stack := dump[place[0]:end]
		if registers := strings.Index(stack, "\nrax "); registers >= 0 {
			stack = stack[:registers]
		}
		if !isIdle(stack) {
			stacks = append(stacks, strings.TrimSpace(stack))
		}
	}
	return withoutLooks(stacks)
}

var (
	passing    = regexp.MustCompile(`\n(?:remit/redisstore\.\(\*Store\)\.keepUsage|github\.com/redis/go-redis/v9/internal/pool\.\(\*ConnPool\)\.tryDial)\(`)
	lookout    = regexp.MustCompile(`(?s)^goroutine (\d+) .*\n(?:main\.\(\*(?:keySource|operatorSettings)\)\.follow|remit/redisstore\.\(\*Store\)\.keepUsage)\(`)
	partOfLook = regexp.MustCompile(`\ncreated by github\.com/redis/go-redis/.*\.\(\*ClusterClient\)\.processPipeline in goroutine (\d+)\n`)
)

// withoutLooks leaves out what go-redis starts for a moment, one for each node, when an instance looks for new keys and
// settings, as it does now and then for as long as it runs; what tells Redis how much organizations use, which ends a moment
// after there is no more to tell; and what go-redis dials each second until a server is back.
func withoutLooks(stacks []string) []string {
	looks := map[string]bool{}
	for _, stack := range stacks {
		if found := lookout.FindStringSubmatch(stack); found != nil {
			looks[found[1]] = true
		}
	}
	return slices.DeleteFunc(stacks, func(stack string) bool {
		found := partOfLook.FindStringSubmatch(stack)
		return found != nil && looks[found[1]] || passing.MatchString(stack)
	})
}

// isIdle recognises the runtime's own goroutines, in whose stacks there is nothing else; those of fasthttp that wait for a
// connection: in them nothing but the worker function waits for something to be sent.
func isIdle(stack string) bool {
	header, frames, _ := strings.Cut(stack, "\n")
	for frame := range strings.Lines(frames) {
		if strings.HasPrefix(frame, "\t") || strings.HasPrefix(frame, "runtime.") {
			continue
		}
		return strings.HasPrefix(frame, "created by runtime.") ||
			strings.Contains(header, "chan receive") && strings.Contains(frame, "fasthttp.(*workerPool).workerFunc")
	}
	return true
}

// output is what a process has printed.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"remit/internal/redisproc"
)

const (
	readyPatience = 30 * time.Second // for /readyz
	readyPause    = 20 * time.Millisecond
	stopPatience  = 15 * time.Second // for a clean stop, before it is killed
	outputKept    = 4 << 10          // bytes of the service's last output
)

// service is the program of this repository, built for this run, with its own Redis.
type service struct {
	addr string // base URL

	dir    string // temporary: the binary and Redis's files
	redis  *redisproc.Server
	cmd    *exec.Cmd
	output *lastOutput
	done   chan struct{} // closed when the process has been waited for
}

// startService builds the service, starts it and its Redis, and returns when the service is ready. On an error, also from
// ctx, it leaves nothing running.
func startService(ctx context.Context) (*service, error) {
	dir, err := os.MkdirTemp("", "remit-loadtest-")
	if err != nil {
		return nil, err
	}
	s := &service{dir: dir, output: &lastOutput{}}
	if err := s.start(ctx); err != nil {
		s.stop() // the first error matters more than that of stopping
		return nil, err
	}
	return s, nil
}

func (s *service) start(ctx context.Context) error {
	binary := filepath.Join(s.dir, "remit")
	err := buildService(ctx, binary)
	if err != nil {
		return err
	}
	s.redis, err = redisproc.Start(ctx, redisproc.Config{Dir: filepath.Join(s.dir, "redis"), Fsync: "everysec"})
	if err != nil {
		return err
	}
	listen, err := freeAddress()
	if err != nil {
		return err
	}
	s.addr = "http://" + listen
	if err := s.launch(binary, listen); err != nil {
		return err
	}
	return s.waitReady(ctx)
}

// buildService compiles the module's root package.
func buildService(ctx context.Context, binary string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("finding the module (run this inside the repository): %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Dir = strings.TrimSpace(string(root))
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the service: %w\n%s", err, bytes.TrimSpace(output))
	}
	return nil
}

// freeAddress finds a free loopback port. If another process takes it meanwhile, the service reports that and the run ends.
func freeAddress() (string, error) {
	port, err := redisproc.FreePort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// launch starts the process in its own process group, so that Ctrl-C does not end it while it answers requests. stop ends
// it.
func (s *service) launch(binary, listen string) error {
	s.cmd = exec.Command(binary)
	s.cmd.Dir = s.dir
	s.cmd.Env = append(withoutSettings(os.Environ()), "REMIT_REDIS_URL="+s.redis.URL(), "REMIT_LISTEN="+listen)
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	s.done = make(chan struct{})
	go func() {
		s.cmd.Wait() // ProcessState has the error too
		close(s.done)
	}()
	return nil
}

// withoutSettings returns env without the user's settings of the service, so that every run measures the defaults.
func withoutSettings(env []string) []string {
	var kept []string
	for _, variable := range env {
		if !strings.HasPrefix(variable, "REMIT_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

// waitReady returns when /readyz answers 200. Its error contains the last output of the service.
func (s *service) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyPatience, fmt.Errorf("timeout after %s", readyPatience))
	defer cancel()
	api := newTransport(s.addr, 1)
	for {
		answer, err := api.send(ctx, http.MethodGet, "/readyz", "", nil)
		if err == nil && answer.StatusCode == http.StatusOK {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("the service ended before it was ready: %v%s", s.cmd.ProcessState, s.output)
		case <-ctx.Done():
			return fmt.Errorf("the service is not ready: %w: %v%s", context.Cause(ctx), err, s.output)
		case <-time.After(readyPause):
		}
	}
}

// stop ends the service and then Redis, each by its process id, and removes their files. It returns when both have ended. It
// is an error if one did not stop cleanly.
func (s *service) stop() error {
	var errs []error
	if s.cmd != nil {
		errs = append(errs, s.stopProcess())
	}
	if s.redis != nil {
		errs = append(errs, s.redis.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

func (s *service) stopProcess() error {
	// Signals fail only when the process has already ended.
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(stopPatience):
		s.cmd.Process.Kill()
		<-s.done
	}
	if !s.cmd.ProcessState.Success() {
		return fmt.Errorf("the service did not stop cleanly: %v%s", s.cmd.ProcessState, s.output)
	}
	return nil
}

// lastOutput keeps the end of what a process prints.
type lastOutput struct {
	mu   sync.Mutex
	kept []byte
}

// Write never fails.
func (o *lastOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, p...)
	if extra := len(o.kept) - outputKept; extra > 0 {
		o.kept = append(o.kept[:0], o.kept[extra:]...)
	}
	return len(p), nil
}

// String returns the output as the end of an error message.
func (o *lastOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := bytes.TrimSpace(o.kept)
	if len(lines) == 0 {
		return ""
	}
	return "; its last output:\n" + string(lines)
}

package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"remit/client"
)

// The service for the examples and some tests. It starts with the first test that needs it and stops after the last. These
// tests cannot use test/serviceproc: this module would have to require the service's, and with it all users of the SDK.

const (
	startPatience = 30 * time.Second
	stopPatience  = 15 * time.Second // for an orderly end, before it is killed
)

type service struct {
	url    string
	dir    string // temporary: the binary and Redis's files
	cmd    *exec.Cmd
	output output
	ended  chan struct{} // closed when the process has been waited for
}

var running struct {
	once    sync.Once
	service *service
	err     error
}

// TestMain fails when a goroutine is left once all has ended.
func TestMain(m *testing.M) {
	if os.Getenv(holderVariable) != "" {
		holdLease()
		return
	}
	code := tests{m}.Run()
	if left := goroutinesLeft(); left != "" && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines are left:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// goroutinesLeft returns the stacks of all goroutines but the caller's, or nothing if all others end. That of os/signal, which
// fuzzing starts, never does.
func goroutinesLeft() string {
	stacks := make([]byte, 1<<20)
	for deadline := time.Now().Add(stopPatience); ; time.Sleep(5 * time.Millisecond) {
		all := strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n")
		left := slices.DeleteFunc(all[1:], func(stack string) bool { return strings.Contains(stack, "os/signal.") })
		if len(left) == 0 || time.Now().After(deadline) {
			return strings.Join(left, "\n\n")
		}
	}
}

type tests struct{ *testing.M }

// Run stops the service also when an example panics.
func (m tests) Run() (code int) {
	defer func() {
		if s := running.service; s != nil {
			if err := s.stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}()
	return m.M.Run()
}

// startedService returns the shared service. It panics when the service does not start.
func startedService() *service {
	running.once.Do(func() {
		running.service = &service{ended: make(chan struct{})}
		running.err = running.service.start()
	})
	if running.err != nil {
		panic(running.err)
	}
	return running.service
}

func (s *service) start() error {
	var err error
	if s.dir, err = os.MkdirTemp("", "remit-client-"); err != nil {
		return err
	}
	binary, err := s.program()
	if err != nil {
		return err
	}
	cmd := exec.Command(binary)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "REMIT_LISTEN=127.0.0.1:0", "REMIT_TRUSTED_PROXIES=127.0.0.0/8"}
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	go func() {
		cmd.Wait() // what it returns, ProcessState says too
		close(s.ended)
	}()
	return s.awaitAddress()
}

// program returns the path of the service's binary: the one that scripts/test.sh has built for all packages, or else one that
// it builds.
func (s *service) program() (string, error) {
	if built := os.Getenv("REMIT_TEST_BINARY"); built != "" {
		return built, nil
	}
	binary := filepath.Join(s.dir, "remit")
	if text, err := exec.Command("go", "build", "-C", "..", "-o", binary, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("the service does not build: %w\n%s", err, text)
	}
	return binary, nil
}

var listening = regexp.MustCompile(`listening url=(http://\S+)`)

func (s *service) awaitAddress() error {
	for deadline := time.Now().Add(startPatience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if found := listening.FindStringSubmatch(s.output.String()); found != nil {
			s.url = found[1]
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the service ended: %v\n%s", s.cmd.ProcessState, s.output.String())
		default:
		}
	}
	return fmt.Errorf("the service is not ready\n%s", s.output.String())
}

// stop ends the service with its Redis, and removes their files.
func (s *service) stop() error {
	var errs []error
	if s.cmd != nil {
		// A signal fails only when the process has ended already.
		s.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.ended:
		case <-time.After(stopPatience):
			s.cmd.Process.Kill()
			<-s.ended
		}
		if !s.cmd.ProcessState.Success() {
			errs = append(errs, fmt.Errorf("the service did not end in order: %v\n%s", s.cmd.ProcessState, s.output.String()))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// output collects what a process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(o.text.String())
}

// remit is a Client of the service.
func remit() *client.Client {
	c, err := client.New(startedService().url, client.Options{})
	if err != nil {
		panic(err)
	}
	return c
}

// organization is a new one of the service.
func organization() *client.Organization {
	made, err := remit().CreateOrganization(context.Background(), client.OrganizationParams{Name: "acme"})
	if err != nil {
		panic(err)
	}
	return remit().Organization(string(made.APIKey))
}

// agentOf is a new agent of the organization.
func agentOf(o *client.Organization, scopes ...string) *client.Agent {
	made, err := o.CreateAgent(context.Background(), client.AgentParams{Name: "scout", Scopes: scopes})
	if err != nil {
		panic(err)
	}
	return remit().Agent(made.ID, string(made.Secret))
}

// sessionOf is a new session of the agent.
func sessionOf(o *client.Organization, a *client.Agent, p client.SessionParams) *client.Session {
	p.AgentID = a.ID()
	made, err := o.CreateSession(context.Background(), p)
	if err != nil {
		panic(err)
	}
	return a.Session(made.ID)
}

package client_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
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
	url  string
	dir  string // temporary: the binary and Redis's files
	cmd  *exec.Cmd
	rest chan []byte // what it prints from its address on, once it has ended
}

var running *service // nil: none was started

func TestMain(m *testing.M) {
	code := runAll(m)
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

// runAll stops the service also when an example panics.
func runAll(m *testing.M) (code int) {
	defer func() {
		if running == nil {
			return
		}
		if err := running.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	return m.Run()
}

// got is for calls that an example takes for granted.
func got[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// startedService returns the shared service. It panics when the service does not start.
var startedService = sync.OnceValue(func() *service {
	running = &service{dir: got(os.MkdirTemp("", "remit-client-")), rest: make(chan []byte, 1)}
	running.start()
	return running
})

var listening = regexp.MustCompile(`listening url=(http://\S+)`)

func (s *service) start() {
	s.cmd = exec.Command(s.program())
	s.cmd.Dir = s.dir
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "REMIT_LISTEN=127.0.0.1:0"}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	printed := bufio.NewReader(got(s.cmd.StdoutPipe()))
	s.cmd.Stderr = s.cmd.Stdout
	got(0, s.cmd.Start())
	late := time.AfterFunc(startPatience, func() { s.cmd.Process.Kill() })
	defer late.Stop()
	for said := ""; s.url == ""; {
		line, err := printed.ReadString('\n')
		said += line
		if err != nil {
			panic("the service is not ready:\n" + said)
		}
		if found := listening.FindStringSubmatch(line); found != nil {
			s.url = found[1]
		}
	}
	go func() {
		rest, _ := io.ReadAll(printed)
		s.rest <- rest
	}()
}

// program returns the path of the service's binary: the one that scripts/test.sh has built for all packages, or else one that
// it builds.
func (s *service) program() string {
	if built := os.Getenv("REMIT_TEST_BINARY"); built != "" {
		return built
	}
	binary := filepath.Join(s.dir, "remit")
	if text, err := exec.Command("go", "build", "-C", "..", "-o", binary, ".").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("the service does not build: %v\n%s", err, text))
	}
	return binary
}

// stop ends the service with its Redis, and removes their files.
func (s *service) stop() error {
	defer os.RemoveAll(s.dir)
	if s.url == "" {
		return nil // it has not started, and said so
	}
	s.cmd.Process.Signal(syscall.SIGTERM) // fails only when the process has ended already
	late := time.AfterFunc(stopPatience, func() { s.cmd.Process.Kill() })
	defer late.Stop()
	rest := <-s.rest
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("the service did not end in order: %w\n%s", err, rest)
	}
	return nil
}

func remit() *client.Client { return got(client.New(startedService().url, client.Options{})) }

func organization() *client.Organization {
	made := got(remit().CreateOrganization(context.Background(), client.OrganizationParams{Name: "acme"}))
	return remit().Organization(string(made.APIKey))
}

func agentOf(o *client.Organization, scopes ...string) *client.Agent {
	made := got(o.CreateAgent(context.Background(), client.AgentParams{Name: "scout", Scopes: scopes}))
	return remit().Agent(made.ID, string(made.Secret))
}

func sessionOf(o *client.Organization, a *client.Agent, p client.SessionParams) *client.Session {
	p.AgentID = a.ID()
	return a.Session(got(o.CreateSession(context.Background(), p)).ID)
}

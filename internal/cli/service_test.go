package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"remit/test/serviceproc"
	"remit/test/suite"
)

// The tests of this package run the program as people and scripts do, against one service that is the program too.

func TestMain(m *testing.M) { goleak.VerifyTestMain(serviceproc.Tests{M: m, End: stopShared}) }

// shared is the service of all tests, once one of them has asked for it, and sharedDir has its data.
var (
	shared    *serviceproc.Service
	sharedDir string
)

var launchShared = sync.OnceValue(func() (err error) {
	if sharedDir, err = os.MkdirTemp("", "remit-cli-"); err == nil {
		shared, err = serviceproc.Launch(sharedDir)
	}
	return err
})

func serviceURL(t testing.TB) string {
	t.Helper()
	must(0, launchShared())(t)
	return shared.URL
}

func stopShared() {
	if shared == nil {
		return
	}
	if err := errors.Join(shared.Stop(), os.RemoveAll(sharedDir)); err != nil {
		panic(err)
	}
}

// terminal is what the commands find in their environment.
type terminal struct {
	t     *testing.T
	env   map[string]string
	stdin string
	limit time.Duration // of a command, a minute unless given
}

// newTerminal has the address of the service, and no credential.
func newTerminal(t *testing.T) *terminal {
	return &terminal{t: t, env: map[string]string{"REMIT_ADDR": serviceURL(t), "LC_ALL": "C.UTF-8"}}
}

type ran struct {
	t              *testing.T
	stdout, stderr string
	exit           int
}

func (s *terminal) command(args ...string) *exec.Cmd {
	s.t.Helper()
	binary := must(serviceproc.Program())(s.t)
	ctx, cancel := context.WithTimeout(s.t.Context(), cmp.Or(s.limit, time.Minute)) // so that a command that does not end fails its own test
	s.t.Cleanup(cancel)
	command := exec.CommandContext(ctx, binary, args...)
	command.Dir = s.t.TempDir()
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range s.env {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Stdin = strings.NewReader(s.stdin)
	return command
}

func (s *terminal) run(args ...string) ran {
	s.t.Helper()
	command := s.command(args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	var failed *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &failed) {
		s.t.Fatal(err)
	}
	return ran{s.t, stdout.String(), stderr.String(), command.ProcessState.ExitCode()}
}

func (s *terminal) good(args ...string) ran {
	s.t.Helper()
	r := s.run(args...)
	if r.exit != 0 {
		s.t.Fatalf("remit %s: exit %d, %s", strings.Join(args, " "), r.exit, r.stderr)
	}
	return r
}

// fails runs remit, which must exit so, say what the pattern matches, and print nothing.
func (s *terminal) fails(exit int, says string, args ...string) {
	s.t.Helper()
	r := s.run(args...)
	if r.exit != exit || r.stdout != "" {
		s.t.Errorf("remit %s: exit %d, want %d: %s%s", strings.Join(args, " "), r.exit, exit, r.stdout, r.stderr)
	}
	has(s.t, r.stderr, says)
}

// document decodes standard output, which must hold one JSON document in one line and nothing else.
func document[T any](r ran) T {
	r.t.Helper()
	var value T
	if err := json.Unmarshal([]byte(r.stdout), &value); err != nil || strings.Count(r.stdout, "\n") != 1 {
		r.t.Fatalf("stdout is not one document in one line: %v: %s", err, r.stdout)
	}
	return value
}

// object runs remit with --json and returns the members of its document.
func (s *terminal) object(args ...string) map[string]any {
	s.t.Helper()
	return document[map[string]any](s.good(append(args, "--json")...))
}

// ofOrganization is a terminal with the API key of a new organization in its environment.
func ofOrganization(t *testing.T) *terminal {
	t.Helper()
	s := newTerminal(t)
	s.env["REMIT_API_KEY"] = s.object("org", "create", "acme")["api_key"].(string)
	return s
}

func (s *terminal) newAgent(scopes ...string) (id, secret string) {
	s.t.Helper()
	made := s.object("agent", "create", "scout", "--scopes", strings.Join(scopes, ","))
	return made["id"].(string), made["secret"].(string)
}

func (s *terminal) newSession(flags ...string) string {
	s.t.Helper()
	agent, _ := s.newAgent("read")
	return s.object(append([]string{"session", "create", agent}, flags...)...)["id"].(string)
}

// charge charges a session, also where the commands of the terminal do not reach the service.
func (s *terminal) charge(session string, flags ...string) {
	s.t.Helper()
	s.with(s.t, map[string]string{"REMIT_ADDR": serviceURL(s.t)}).good(append([]string{"charge", session}, flags...)...)
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

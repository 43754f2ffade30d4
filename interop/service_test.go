package interop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// scratch holds the program and the data of the shared service, for as long as the tests run.
var scratch string

// TestMain fails when a goroutine is left once all has ended.
func TestMain(m *testing.M) { goleak.VerifyTestMain(tests{m}) }

type tests struct{ *testing.M }

// Run stops the shared service.
func (m tests) Run() int {
	var err error
	if scratch, err = os.MkdirTemp("", "remit-interop-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	defer stopShared()
	return m.M.Run()
}

// program builds the service, once, and returns the path of its binary.
var program = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(scratch, "remit")
	build := exec.Command("go", "build", "-o", binary, "remit")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the service does not build: %w\n%s", err, output)
	}
	return binary, nil
})

// service is a running remit, with a redis-server of its own. Its issuer is where it listens.
type service struct {
	url     string
	process *process
}

var listening = regexp.MustCompile(`listening url=(http://\S+)`)

// launch starts a service that keeps its data in dir and listens on a free port.
func launch(dir string, args ...string) (*service, error) {
	binary, err := program()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	p, err := startProcess(cmd, "REMIT_LISTEN=127.0.0.1:0", "REMIT_DATA_DIR="+filepath.Join(dir, "data"))
	if err != nil {
		return nil, err
	}
	s := &service{process: p}
	err = p.await(func() bool {
		found := listening.FindStringSubmatch(p.output.String())
		if found != nil {
			s.url = found[1]
		}
		return found != nil
	})
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return s, nil
}

// startService runs a service of the test's own until the test ends.
func startService(t *testing.T, args ...string) *service {
	t.Helper()
	s, err := launch(t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.process.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// shared is the service of all tests that need no settings of their own.
var shared struct {
	sync.Once
	service *service
	err     error
}

func sharedService(t *testing.T) *service {
	t.Helper()
	shared.Do(func() { shared.service, shared.err = launch(scratch) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.service
}

func stopShared() {
	if shared.service == nil {
		return
	}
	if err := shared.service.process.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// startServiceSigning runs a service that signs with a key of the algorithm, made as its users make one.
func startServiceSigning(t *testing.T, algorithm string) *service {
	t.Helper()
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	key, err := exec.CommandContext(t.Context(), binary, "keys", "generate", "signing", "--algorithm", algorithm).Output()
	if err != nil {
		t.Fatalf("no %s key: %v", algorithm, err)
	}
	file := filepath.Join(t.TempDir(), "signing.pem")
	if err := os.WriteFile(file, key, 0o600); err != nil {
		t.Fatal(err)
	}
	return startService(t, "--signing-key", file)
}

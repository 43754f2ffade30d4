package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"remit/test/serviceproc"
	"remit/test/suite"
)

// TestMain fails if a goroutine outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(serviceproc.Tests{M: m, End: stopShared}) }

// service is a running remit with its own redis-server. Its issuer is its address.
type service struct{ *serviceproc.Service }

// startService runs a service until the test ends.
func startService(t *testing.T, args ...string) *service {
	t.Helper()
	return &service{serviceproc.Run(t, args...)}
}

// shared is the service of all tests that need no special settings.
var shared struct {
	sync.Once
	service *service
	dir     string
	err     error
}

func sharedService(t *testing.T) *service {
	t.Helper()
	shared.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "remit-interop-"); shared.err != nil {
			return
		}
		var started *serviceproc.Service
		if started, shared.err = serviceproc.Launch(shared.dir); shared.err == nil {
			shared.service = &service{started}
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.service
}

func stopShared() {
	if shared.service != nil {
		if err := shared.service.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
}

// startServiceSigning runs a service with a signing key of the algorithm. remit keys generates the key.
func startServiceSigning(t *testing.T, algorithm string) *service {
	t.Helper()
	binary := must(serviceproc.Program())(t)
	key, err := exec.CommandContext(t.Context(), binary, "keys", "generate", "signing", "--algorithm", algorithm).Output()
	if err != nil {
		t.Fatalf("no %s key: %v", algorithm, err)
	}
	file := filepath.Join(t.TempDir(), "signing.pem")
	noError(t, os.WriteFile(file, key, 0o600))
	return startService(t, "--signing-key", file)
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

var noError = suite.NoError

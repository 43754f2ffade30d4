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

func startService(t *testing.T, args ...string) *service {
	t.Helper()
	return &service{serviceproc.Run(t, args...)}
}

// shared is the service of all tests that need no special settings, and sharedDir has its data.
var (
	shared    service
	sharedDir string
)

var launchShared = sync.OnceValue(func() (err error) {
	if sharedDir, err = os.MkdirTemp("", "remit-interop-"); err == nil {
		shared.Service, err = serviceproc.Launch(sharedDir)
	}
	return err
})

func sharedService(t *testing.T) *service {
	t.Helper()
	noError(t, launchShared())
	return &shared
}

func stopShared() {
	if shared.Service != nil {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.RemoveAll(sharedDir)
}

// serviceSigning returns a service with a signing key of the algorithm. remit keys generates the key, unless the algorithm is the default one.
func serviceSigning(t *testing.T, algorithm string) *service {
	t.Helper()
	if algorithm == "EdDSA" {
		return sharedService(t)
	}
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

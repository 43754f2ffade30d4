// Package serviceproc builds the service and runs it as a process with its own redis-server, for tests that use the service
// from outside. Only tests import it.
//
//	func TestMain(m *testing.M) { os.Exit(serviceproc.Tests{M: m}.Run()) }
//
//	func TestSomething(t *testing.T) {
//		service := serviceproc.Run(t)
//		http.Get(service.URL + "/healthz")
//	}
package serviceproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var (
	// scratch holds the binary while the tests run.
	scratch string
	// race says whether the binary is built with the race detector.
	race bool
)

// Tests are the tests of a package that runs the service. Call its Run instead of testing.M's.
type Tests struct {
	*testing.M
	Race bool   // build the service with the race detector
	End  func() // called after all tests; may be nil
}

// Run runs the tests, calls End and removes the binary.
func (m Tests) Run() int {
	var err error
	if scratch, err = os.MkdirTemp("", "remit-tests-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	race = m.Race
	if m.End != nil {
		defer m.End()
	}
	return m.M.Run()
}

// Program returns the path of the service's binary: the one that REMIT_TEST_BINARY names, which scripts/test.sh builds once
// for all packages, with its content in its path. Without it, and with the race detector, it builds one for the package.
var Program = sync.OnceValues(func() (string, error) {
	if built := os.Getenv("REMIT_TEST_BINARY"); built != "" && !race {
		return built, nil
	}
	return Build("remit", "-race="+strconv.FormatBool(race))
})

// Build builds a program of the project for the package's tests, with these flags of go build.
func Build(importPath string, flags ...string) (binary string, err error) {
	if scratch == "" {
		return "", errors.New("the package's TestMain must run serviceproc.Tests")
	}
	if err := readSources(importPath); err != nil {
		return "", err
	}
	binary = filepath.Join(scratch, path.Base(importPath))
	build := exec.Command("go", append(append([]string{"build", "-o", binary}, flags...), importPath)...)
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s does not build: %w\n%s", importPath, err, output)
	}
	return binary, nil
}

// readSources opens the directories that a program is built from, so that go test, which takes the outcome of tests from its cache, sees
// when they have changed.
func readSources(importPath string) error {
	list := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.Dir}}{{end}}", importPath)
	directories, err := list.Output()
	if err != nil {
		return fmt.Errorf("what %s is built from: %w", importPath, err)
	}
	for _, directory := range strings.Fields(string(directories)) {
		if _, err := os.ReadDir(directory); err != nil {
			return err
		}
	}
	return nil
}

// Service is a running remit, or a gateway.
type Service struct {
	URL string // http://127.0.0.1:PORT, also the issuer of a service
	*Process
}

var listening = regexp.MustCompile(`(?:listening|metering)(?: url=|","url":")(https?://[^\s"]+)`)

// Launch starts a service that keeps its data in dir and listens on a free port. The arguments are further flags. Stop it
// after use.
func Launch(dir string, args ...string) (*Service, error) {
	return LaunchWith(dir, []string{"REMIT_LISTEN=127.0.0.1:0", "REMIT_DATA_DIR=" + filepath.Join(dir, "data")}, args...)
}

// LaunchWith starts a service in dir with these settings (NAME=value) and these flags, and returns when it listens. Stop it
// after use.
func LaunchWith(dir string, settings []string, args ...string) (*Service, error) {
	binary, err := Program()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	p, err := StartProcess(cmd, settings...)
	if err != nil {
		return nil, err
	}
	url, err := AwaitURL(p)
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return &Service{url, p}, nil
}

// GatewayConfig is the name of the file that a gateway reads first.
const GatewayConfig = "gateway.yaml"

// LaunchGateway starts a metering gateway in dir with these files by their names, GatewayConfig among them, and these settings (NAME=value),
// and returns when it takes calls. Stop it after use.
func LaunchGateway(dir string, files map[string]string, settings ...string) (*Service, error) {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return LaunchWith(dir, settings, "gateway", "--config", GatewayConfig)
}

// AwaitURL waits until a service logs that it listens, or a gateway that it meters, and returns where.
func AwaitURL(p *Process) (url string, err error) {
	err = p.Await(func() bool {
		found := listening.FindStringSubmatch(p.Output())
		if found != nil {
			url = found[1]
		}
		return found != nil
	})
	return url, err
}

// Run launches a service for the test and stops it when the test ends.
func Run(t testing.TB, args ...string) *Service {
	t.Helper()
	s, err := Launch(t.TempDir(), args...)
	return runs(t, s, err)
}

// RunGateway launches a gateway for the test as LaunchGateway does, and stops it when the test ends.
func RunGateway(t testing.TB, files map[string]string, settings ...string) *Service {
	t.Helper()
	s, err := LaunchGateway(t.TempDir(), files, settings...)
	return runs(t, s, err)
}

func runs(t testing.TB, s *Service, err error) *Service {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

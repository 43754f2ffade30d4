// Package tool finds the programs that tests need, installs their npm packages, and says what they read. Only tests import it.
package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Path returns the path of a program. Where it is missing the test fails, or skips under -short.
func Path(t testing.TB, name string) string {
	t.Helper()
	for _, candidate := range []string{name, "/usr/sbin/" + name} { // Debian keeps servers out of a user's PATH
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	missing(t, name)
	return ""
}

// Python returns a python3 that has the package cryptography, which the SDK's keys need: the user's, or the system's, for which
// Debian has the package. Where it is missing the test fails, or skips under -short.
func Python(t testing.TB) string {
	t.Helper()
	if found := python(); found != "" {
		return found
	}
	missing(t, "a python3 with cryptography")
	return ""
}

func missing(t testing.TB, program string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("%s is not installed", program)
	}
	t.Fatalf("%s is not installed; scripts/install-tools.sh installs it", program)
}

var python = sync.OnceValue(func() string {
	for _, candidate := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(candidate, "-c", "import cryptography").Run() == nil {
			return candidate
		}
	}
	return ""
})

// installs maps each directory to a function that installs its packages once.
var installs sync.Map

// Install installs the packages of the directory's package-lock.json. It does nothing if that file has not changed since.
func Install(t testing.TB, dir string) {
	t.Helper()
	Path(t, "node")
	Path(t, "npm")
	once, _ := installs.LoadOrStore(dir, sync.OnceValue(func() error { return install(dir) }))
	if err := once.(func() error)(); err != nil {
		t.Fatal(err)
	}
}

const npmTimeout = 5 * time.Minute

func install(dir string) error {
	file, err := os.Open(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	defer file.Close()
	// The tests of two packages may want the same directory. Closing the file ends the lock.
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	lock, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(lock)
	want, stamp := hex.EncodeToString(sum[:]), filepath.Join(dir, "node_modules", ".installed")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), npmTimeout)
	defer cancel()
	npm := Command(ctx, dir, "npm", "ci", "--prefer-offline")
	npm.Env = os.Environ()
	if output, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci (it needs a package registry or a warm cache): %w\n%s", err, Indented(output))
	}
	return os.WriteFile(stamp, []byte(want), 0o644)
}

// Reads says that the outcome of the package's tests depends on these files, and on those in these directories: programs that the tests
// start read them. go test takes an outcome from its cache as long as the files that the tests themselves open are the same, and what
// other programs open it cannot see.
func Reads(t testing.TB, paths ...string) {
	t.Helper()
	for _, root := range paths {
		// The walk opens each directory, and so names all that is in it.
		err := filepath.WalkDir(root, func(_ string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && slices.Contains(made, entry.Name()) {
				return filepath.SkipDir
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// made are names of directories of what programs make of the files.
var made = []string{"node_modules", "build", "dist", "__pycache__"}

// Command returns a command that runs in a directory. Its whole process group ends with ctx, because npm starts node, and node
// starts a process for each test file.
func Command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// LockNamesNoRegistry fails the test if the directory's package-lock.json has the URLs of a registry.
func LockNamesNoRegistry(t testing.TB, dir string) {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(lock), `"resolved"`) {
		t.Errorf("%s/package-lock.json has resolved URLs: run npm install in %s/, where .npmrc omits them", dir, dir)
	}
}

// Indented indents the output of a program, to set it apart from the test's own text.
func Indented(output []byte) string {
	return "    | " + strings.ReplaceAll(strings.TrimSpace(string(output)), "\n", "\n    | ")
}

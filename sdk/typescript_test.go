package sdk

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"remit/test/serviceproc"
	"remit/test/tool"
)

const (
	typeScriptDir = "typescript"
	nodeTimeout   = 10 * time.Minute
)

// This test builds the SDK like its users, and runs its TypeScript tests against a service.
func TestTypeScriptSDKPassesItsTests(t *testing.T) {
	t.Parallel()
	build(t, typeScriptDir)
	// The tests verify proofs as a proxy does, which says what the request was.
	settings := []string{"REMIT_ADDR=" + serviceproc.Run(t, "--trusted-proxies", "127.0.0.0/8").URL, startFakeProvider(t)}
	runNodeTests(t, typeScriptDir, "*.test.js", nodeTimeout, settings)
}

// runNodeTests runs the built tests in a directory whose files match the pattern.
func runNodeTests(t *testing.T, dir, pattern string, timeout time.Duration, settings []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "build", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests found: %v", err)
	}
	args := []string{"--test", "--test-reporter=tap", "--test-concurrency=4"} // the tests mostly wait
	for _, file := range files {
		args = append(args, filepath.Join("build", filepath.Base(file)))
	}
	output := inNodeDir(t, dir, timeout, settings, "node", args...)

	counts := regexp.MustCompile(`(?s)\n# tests ([1-9]\d*)\n.*\n# pass (\d+)\n`).FindStringSubmatch(output)
	if counts == nil || counts[1] != counts[2] {
		t.Fatalf("not all tests ran and passed: %.60q\n%s", counts, output)
	}
	t.Logf("%s tests passed", counts[2])
}

// builds has the directories whose packages and tests are built, once: of the SDK, and of the adapters to frameworks.
var builds = map[string]*struct {
	once  sync.Once
	built bool
}{typeScriptDir: {}, adaptersDir: {}}

func build(t *testing.T, dir string) {
	t.Helper()
	b := builds[dir]
	b.once.Do(func() {
		tool.Reads(t, dir)
		tool.Install(t, dir)
		for _, made := range []string{"dist", "build"} { // remove the output of deleted sources
			noError(t, os.RemoveAll(filepath.Join(dir, made)))
		}
		for _, script := range []string{"build", "build:test"} {
			inNodeDir(t, dir, nodeTimeout, nil, "npm", "run", script)
		}
		b.built = true
	})
	if !b.built {
		t.Fatalf("%s does not build; another test has the reason", dir)
	}
}

func buildAdapters(t *testing.T) {
	t.Helper()
	build(t, typeScriptDir)
	build(t, adaptersDir)
}

func TestLockFilesNameNoRegistry(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{typeScriptDir, adaptersDir} {
		tool.LockNamesNoRegistry(t, dir)
	}
}

// The SDK has no dependencies, and uses nothing that only Node has.
func TestTypeScriptSDKHasNoDependencies(t *testing.T) {
	t.Parallel()
	manifest := must(os.ReadFile(filepath.Join(typeScriptDir, "package.json")))(t)
	if found := regexp.MustCompile(`"(d|peerD|optionalD)ependencies"`).Find(manifest); found != nil {
		t.Errorf("package.json has %s", found)
	}
	sources, err := filepath.Glob(filepath.Join(typeScriptDir, "src", "*.ts"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources found: %v", err)
	}
	foreign := regexp.MustCompile(`(?m)(from|import)\s*\(?\s*["'][^.]|\b(process|Buffer|require)\b[.(]`)
	for _, source := range sources {
		code := must(os.ReadFile(source))(t)
		if found := foreign.Find(code); found != nil {
			t.Errorf("%s uses %s", source, found)
		}
	}
}

func inNodeDir(t *testing.T, dir string, timeout time.Duration, settings []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	output, err := nodeCommand(ctx, dir, settings, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, tool.Indented(output))
	}
	return string(output)
}

// nodeCommand returns a command that runs in a directory, with only these settings in its environment.
func nodeCommand(ctx context.Context, dir string, settings []string, name string, args ...string) *exec.Cmd {
	cmd := tool.Command(ctx, dir, name, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, settings...)
	return cmd
}

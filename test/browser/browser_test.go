package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remit/test/serviceproc"
	"remit/test/suite"
	"remit/test/tool"
)

func TestMain(m *testing.M) { os.Exit(serviceproc.Tests{M: m}.Run()) }

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

const scriptTimeout = 8 * time.Minute // a run takes about one

// runScript runs a test file with node against the service.
func runScript(t *testing.T, service *serviceproc.Service, script string, settings ...string) {
	t.Helper()
	tool.Reads(t, ".")
	output, err := node(t, scriptTimeout, service, settings, "--test", "--test-reporter=spec", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, tool.Indented(output))
	}
	if log := service.Output(); strings.Contains(log, "rmk_") || strings.Contains(log, "rms_") || strings.Contains(log, "rmsk_") {
		t.Errorf("the service's log has a credential:\n%s", log)
	}
	if testing.Verbose() {
		t.Logf("%s\n%s", script, tool.Indented(output))
	}
}

// node returns a command that runs a script against the service.
func node(t *testing.T, timeout time.Duration, service *serviceproc.Service, settings []string, args ...string) *exec.Cmd {
	t.Helper()
	tool.Install(t, ".")
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	cmd := tool.Command(ctx, ".", tool.Path(t, "node"), args...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "REMIT_ADDR=" + service.URL, "CHROMIUM=" + tool.Path(t, "chromium"),
		"REMIT_SCREENSHOTS=" + os.Getenv("REMIT_SCREENSHOTS"),
	}, settings...)
	if suite.Long {
		cmd.Env = append(cmd.Env, "REMIT_LONG=1") // by keyboard, and within which time, too
	}
	return cmd
}

func TestAPersonWatchesAndStopsAFleet(t *testing.T) {
	t.Parallel()
	loadtest := must(serviceproc.Build("remit/loadtest"))(t)
	runScript(t, serviceproc.Run(t), "journey.test.mjs", "LOADTEST="+loadtest)
}

func TestPagesShowWhatAnotherProgramDoes(t *testing.T) {
	t.Parallel()
	runScript(t, serviceproc.Run(t), "program.test.mjs")
}

func TestTheLockFileNamesNoRegistry(t *testing.T) {
	t.Parallel()
	tool.LockNamesNoRegistry(t, filepath.Clean("."))
}

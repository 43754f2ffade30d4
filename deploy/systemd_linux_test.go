package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"remit/test/serviceproc"
)

// units have the drop-ins that each comes with, and how many seconds a stop of its program may take.
var units = map[string]struct {
	dropIns []string
	stop    int
}{
	"remit.service":         {[]string{"keys.conf", "tls.conf"}, 8},           // shutdownGrace in serve.go
	"remit-gateway.service": {[]string{"keys.conf", "gateway.conf"}, 30 + 12}, // stop_seconds, and what Stop and run wait for after that
}

// unit writes a unit with its drop-ins, and the path of the program under test.
func unit(t *testing.T, name string) string {
	t.Helper()
	binary := must(serviceproc.Program())(t)
	dir := t.TempDir()
	write := func(from, to string) {
		text := must(os.ReadFile(filepath.Join("systemd", from)))(t)
		file := filepath.Join(dir, to)
		noError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		noError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "/usr/bin/remit", binary)), 0o600))
	}
	write(name, name)
	for _, dropIn := range units[name].dropIns {
		write(dropIn, filepath.Join(name+".d", dropIn))
	}
	return filepath.Join(dir, name)
}

// systemd rates exposure from 0 to 10. The rest is network access, and read access to the machine's file system.
func TestSystemdAcceptsTheUnitsAndRatesTheirExposureLow(t *testing.T) {
	t.Parallel()
	const allowed = 1.5
	for name := range units {
		file := unit(t, name)
		if output, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput(); err != nil || len(output) > 0 {
			t.Errorf("%s: %v\n%s", name, err, output)
		}
		output, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", file).CombinedOutput()
		found := regexp.MustCompile(`exposure level for ` + name + `: ([0-9.]+)`).FindSubmatch(output)
		if err != nil || found == nil {
			t.Fatalf("%s: %v\n%s", name, err, output)
		}
		if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level > allowed {
			t.Errorf("the exposure of %s is %s, above %.1f\n%s", name, found[1], allowed, output)
		}
	}
}

func TestTheUnitsAllowADrainAndTheServicesOwnRedisOutlivesIt(t *testing.T) {
	t.Parallel()
	for name, want := range units {
		text := must(os.ReadFile(filepath.Join("systemd", name)))(t)
		found := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindSubmatch(text)
		if found == nil {
			t.Fatal(name, "has no TimeoutStopSec")
		}
		if seconds, err := strconv.Atoi(string(found[1])); err != nil || seconds <= want.stop {
			t.Errorf("systemd kills %s after %s seconds, before a drain ends", name, found[1])
		}
	}
	if text := must(os.ReadFile("systemd/remit.service"))(t); !strings.Contains(string(text), "\nKillMode=mixed\n") {
		t.Error("systemd stops the service's own Redis before its last response")
	}
}

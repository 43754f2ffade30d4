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

// unit writes the unit with keys.conf and tls.conf as drop-ins, and the path of the program under test.
func unit(t *testing.T) string {
	t.Helper()
	binary := must(serviceproc.Program())(t)
	dir := t.TempDir()
	for from, to := range map[string]string{"remit.service": "remit.service", "keys.conf": "remit.service.d/keys.conf", "tls.conf": "remit.service.d/tls.conf"} {
		text := must(os.ReadFile(filepath.Join("systemd", from)))(t)
		file := filepath.Join(dir, to)
		noError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		noError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "/usr/bin/remit", binary)), 0o600))
	}
	return filepath.Join(dir, "remit.service")
}

func TestSystemdAcceptsTheUnit(t *testing.T) {
	t.Parallel()
	if output, err := exec.Command("systemd-analyze", "verify", "--man=no", unit(t)).CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("%v\n%s", err, output)
	}
}

// systemd rates exposure from 0 to 10. The rest is network access, and read access to the machine's file system.
func TestTheUnitHasALowExposureLevel(t *testing.T) {
	t.Parallel()
	const allowed = 1.5
	output, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", unit(t)).CombinedOutput()
	found := regexp.MustCompile(`exposure level for remit.service: ([0-9.]+)`).FindSubmatch(output)
	if err != nil || found == nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level > allowed {
		t.Errorf("the exposure is %s, above %.1f\n%s", found[1], allowed, output)
	}
}

func TestTheUnitAllowsADrainAndSignalsOnlyRemit(t *testing.T) {
	t.Parallel()
	text := must(os.ReadFile("systemd/remit.service"))(t)
	found := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the unit has no TimeoutStopSec")
	}
	if seconds, err := strconv.Atoi(string(found[1])); err != nil || seconds <= 8 { // shutdownGrace in serve.go
		t.Errorf("systemd kills the service after %s seconds, before a drain ends", found[1])
	}
	if !strings.Contains(string(text), "\nKillMode=mixed\n") {
		t.Error("systemd stops the service's own Redis before its last response")
	}
}

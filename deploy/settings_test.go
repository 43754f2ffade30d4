package deploy

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"remit/test/serviceproc"
)

func TestMain(m *testing.M) { os.Exit(serviceproc.Tests{M: m}.Run()) }

// The service silently ignores unknown variables, so this test finds misspelled and renamed ones.
func TestDeployedSettingsExistInTheService(t *testing.T) {
	t.Parallel()
	binary := must(serviceproc.Program())(t)
	help := must(exec.Command(binary, "serve", "--help").Output())(t)
	known := map[string]bool{}
	for _, found := range regexp.MustCompile(`\$(REMIT_[A-Z0-9_]+)`).FindAllSubmatch(help, -1) {
		known[string(found[1])] = true
	}
	if !known["REMIT_REDIS_URL"] || !known["REMIT_LISTEN"] {
		t.Fatalf("the help names no settings:\n%s", help)
	}
	for file, atLeast := range map[string]int{
		"kubernetes/configmap.yaml": 5, "kubernetes/deployment.yaml": 1, "kubernetes/gateway/deployment.yaml": 1,
		"systemd/remit.env": 5, "systemd/remit.service": 1,
		"systemd/keys.conf": 2, "../docker-compose.yml": 1, "../Dockerfile": 1,
	} {
		text := must(os.ReadFile(file))(t)
		set := regexp.MustCompile(`\b(REMIT_[A-Z0-9_]+)(?:=|:\s|\n)`).FindAllSubmatch(text, -1)
		if len(set) < atLeast {
			t.Errorf("%s sets %d variables, want at least %d", file, len(set), atLeast)
		}
		for _, name := range set {
			if !known[string(name[1])] {
				t.Errorf("%s sets %s, which the service does not know", file, name[1])
			}
		}
	}
}

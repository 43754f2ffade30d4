package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"remit/test/serviceproc"
)

func TestTheCommandsOfThePageWorkWhenPasted(t *testing.T) {
	t.Parallel()
	page := must(os.ReadFile("../../docs/cli.md"))(t)
	var blocks strings.Builder
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1) {
		blocks.Write(block[1])
	}
	s := newTerminal(t)
	commands := strings.Replace(blocks.String(), "http://127.0.0.1:8080", serviceURL(t), 1)
	binary := must(serviceproc.Program())(t)
	s.env["PATH"] = filepath.Dir(binary) + string(os.PathListSeparator) + os.Getenv("PATH")
	s.limit = 5 * time.Minute // for some 40 commands
	bash := s.command()
	bash.Path, bash.Args = must(exec.LookPath("bash"))(t), []string{"bash", "-euo", "pipefail", "-c", "umask 022\n" + commands + "complete -p remit\ncat changes.ndjson"}
	output, err := bash.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	has(t, string(output), `^VALUE    0 of 2 USD$`, `^ACTIVE +true$`, `  active  0/20 `, `^STATUS   completed$`, `^complete .*remit$`,
		`^{.*"status":"completed".*}$`)
	for _, name := range []string{"scout.json", "pair.json", "acme.key"} {
		file := must(os.Stat(filepath.Join(bash.Dir, name)))(t)
		wantEqual(t, name, file.Mode().Perm(), 0o600)
	}
	if known := regexp.MustCompile(`rm(?:[kstr]|sk)_\w|eyJ\w`); known.Match(output) {
		t.Errorf("a credential is printed: %s", output)
	}
}

func TestThePageShowsTheBarsAsTheyAre(t *testing.T) {
	t.Parallel()
	page := must(os.ReadFile("../../docs/cli.md"))(t)
	golden := must(os.ReadFile("bars_test.go"))(t)
	shown := regexp.MustCompile("(?s)```text\n(.*?)```").FindSubmatch(page)
	if shown == nil || !strings.Contains(string(golden), "\n"+string(shown[1])) {
		t.Error("the page's bars are none of the tests'")
	}
}

package docs

import (
	"html"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"remit/test/serviceproc"
)

// TestEveryCommandOfTheAPIPageWorksWhenPasted runs each after the preparation alone. Those that only read do so one after the other.
func TestEveryCommandOfTheAPIPageWorksWhenPasted(t *testing.T) {
	t.Parallel()
	service := serviceproc.Run(t)
	page := must(exec.Command("curl", "-sf", service.URL+"/docs").Output())(t)
	var commands, reads []string
	for _, found := range regexp.MustCompile(`(?s)<pre class="curl"><code[^>]*>(.*?)</code></pre>`).FindAllSubmatch(page, -1) {
		commands = append(commands, html.UnescapeString(string(found[1])))
	}
	if len(commands) < 30 {
		t.Fatalf("the page shows %d commands", len(commands))
	}
	preparation := strings.Replace(commands[0], "http://127.0.0.1:8080", service.URL, 1)
	for _, command := range commands[1:] {
		if !writes.MatchString(command) {
			reads = append(reads, command)
			continue
		}
		t.Run(strings.SplitN(command, "\n", 2)[0], func(t *testing.T) {
			t.Parallel()
			wantSuccesses(t, preparation, command)
		})
	}
	if len(reads) < 20 {
		t.Errorf("only %d commands read", len(reads))
	}
	wantSuccesses(t, preparation, reads...)
}

// writes matches a command whose method is not GET.
var writes = regexp.MustCompile(`\s(-X|-d|--data)`)

// answered matches the response to one of the commands.
var answered = regexp.MustCompile(`(?s)(.*?)\nanswered with (\d+)\n`)

// wantSuccesses runs commands in a shell of their own. It repeats what is answered with 503, as the answer asks for: a delivery that is
// to be retried may be under way.
func wantSuccesses(t *testing.T, preparation string, commands ...string) {
	t.Helper()
	script := preparation
	for _, command := range commands {
		script += "\n" + command + ` -s --retry 5 --retry-delay 1 -w '\nanswered with %{http_code}\n'`
	}
	run := exec.Command("sh", "-ec", script)
	run.Env = []string{"PATH=" + os.Getenv("PATH"), "BOOTSTRAP_TOKEN="}
	output, err := run.CombinedOutput()
	answers := answered.FindAllSubmatch(output, -1)
	if err != nil || len(answers) != len(commands) {
		t.Fatalf("%v: %s", err, output)
	}
	for i, command := range commands {
		status := string(answers[i][2])
		refuses := strings.Contains(command, "/oauth2/authorize") // every caller
		if refuses != (status == "400") || !refuses && status >= "4" {
			t.Errorf("%s\n%s%s", command, answers[i][1], status)
		}
	}
}

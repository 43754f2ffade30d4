package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"remit/test/serviceproc"
)

// besideService returns commands that start a gateway beside this service, which has its data in the directory: with the remit in the
// PATH, and ports of their own.
func besideService(t *testing.T, commands, data string) string {
	t.Helper()
	for _, here := range [][2]string{
		{"data/redis.url", filepath.Join(data, "data/redis.url")}, {"bin/remit", "remit"}, {"$PWD/bin:", ""},
		{"127.0.0.1:8089", "127.0.0.1:" + freePort(t)}, {"127.0.0.1:8090", "127.0.0.1:" + freePort(t)},
	} {
		if commands = strings.ReplaceAll(commands, here[0], here[1]); !strings.Contains(commands, here[1]) {
			t.Errorf("the commands have no %s", here[0])
		}
	}
	return commands
}

// serviceIn starts a service in a directory of its own.
func serviceIn(t *testing.T) (service *serviceproc.Service, dir string) {
	t.Helper()
	dir = t.TempDir()
	service = must(serviceproc.Launch(dir))(t)
	t.Cleanup(func() { noError(t, service.Stop()) })
	return service, dir
}

func TestTheGatewaysPageWorksWhenPasted(t *testing.T) {
	t.Parallel()
	service, dir := serviceIn(t)
	remit := append(remitInPath(t), "REMIT_ADDR="+service.URL)
	promised := shownOn(t, "docs/gateway.md", "(?s)```text\n(\"completion_tokens.*?)(\\{.*?\n…\n)(.*?)```")
	inEachShell(t, func(t *testing.T, shell string) {
		printed := paste(t, shell, besideService(t, blocksOf(t, "docs/gateway.md"), dir), remit...)
		wantPrinted(t, printed, promised[1], `"code":"session_limit_reached"`, promised[3])
	})
}

func TestTheReadmesGatewayWorksWhenPasted(t *testing.T) {
	t.Parallel()
	service, dir := serviceIn(t)
	remit := remitInPath(t)
	first, second := examples(t, service.URL)
	inEachShell(t, func(t *testing.T, shell string) {
		printed := paste(t, shell, first+besideService(t, second, dir)+"kill %1 %2\n", remit...)
		wantPrinted(t, printed,
			`"prompt_tokens":73,`, `"completion_tokens":52,`, `"max_value_usd":0.01,"value_used_usd":0.000562,"value_held_usd":0,`)
	})
}

// What the config may have is in the page's table, and nothing else.
func TestTheGatewaysPageHasEveryFieldOfTheConfig(t *testing.T) {
	t.Parallel()
	_, page, _ := strings.Cut(string(must(os.ReadFile("docs/gateway.md"))(t)), "## Configuration")
	source := string(must(os.ReadFile("internal/gateway/config.go"))(t))
	read := map[string]bool{}
	for _, member := range regexp.MustCompile(`"([a-z_]+)": +func\(n node\)`).FindAllStringSubmatch(source, -1) {
		read[member[1]] = true
		if !regexp.MustCompile("`(upstreams\\[\\]\\.)?" + member[1] + "[`[]").MatchString(page) {
			t.Errorf("the page lacks %s", member[1])
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`"+`.*?) \|`).FindAllStringSubmatch(page, -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			if name = strings.TrimPrefix(strings.Trim(name, "`"), "upstreams[]."); !read[name] {
				t.Errorf("the config has no %s", name)
			}
		}
	}
	if len(read) < 20 {
		t.Errorf("only %d fields are found", len(read))
	}
}

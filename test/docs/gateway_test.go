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
	page := string(must(os.ReadFile("docs/gateway.md"))(t))
	promised := regexp.MustCompile("(?s)```text\n(\"completion_tokens.*?)(\\{.*?\n…\n)(.*?)```").FindStringSubmatch(page)
	if promised == nil {
		t.Fatal("the page does not show what the agent gets")
	}
	inEachShell(t, func(t *testing.T, shell string) {
		printed := paste(t, shell, besideService(t, blocksOf(t, "docs/gateway.md"), dir), remit...)
		for _, answer := range []string{promised[1], `"code":"session_limit_reached"`, promised[3]} {
			if !strings.Contains(printed, answer) {
				t.Errorf("the commands print %s, not %s", printed, answer)
			}
		}
	})
}

func TestTheReadmesGatewayWorksWhenPasted(t *testing.T) {
	t.Parallel()
	service, dir := serviceIn(t)
	remit := remitInPath(t)
	first, second := examples(t, service.URL)
	inEachShell(t, func(t *testing.T, shell string) {
		printed := paste(t, shell, first+besideService(t, second, dir)+"kill %1 %2\n", remit...)
		for _, answer := range []string{
			`"prompt_tokens":101,`, `"completion_tokens":52,`, `"max_value_usd":0.01,"value_used_usd":0.000618,"value_held_usd":0,`,
		} {
			if !strings.Contains(printed, answer) {
				t.Errorf("the commands print %s, not %s", printed, answer)
			}
		}
	})
}

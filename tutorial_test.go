package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The commands of docs/tutorial.md are run as they stand there, one block after the other, in one shell.
func TestTheTutorialWorksWhenPasted(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands strings.Builder
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1) {
		commands.Write(block[1])
	}
	printed := paste(t, "127.0.0.1:"+freePort(t), commands.String())
	// What the agent says is on the page, word for word.
	promised := regexp.MustCompile("(?s)```text\n(step 1: .*?)```").FindSubmatch(page)
	if promised == nil || !strings.Contains(printed, string(promised[1])) {
		t.Errorf("the agent does not say what the page shows:\n%s", printed)
	}
	for _, line := range []string{
		`stopped: max_value_usd is reached, 0\.0\d+ USD of 0\.1 used`, // after the top-up
		`active +actions \d+/100 +value 0\.\d+/0\.1 USD`,              // of session watch, without a terminal
		`stopped: no access token: the agent and secret do not match a live agent`,
		`STATUS +revoked`,
		`"type":"agent\.revoked"`,
	} {
		if !regexp.MustCompile(line).MatchString(printed) {
			t.Errorf("nothing matches %s in:\n%s", line, printed)
		}
	}
}

// Where the service does not start, whoever pastes the page is told why, and does not wait for ever.
func TestTheTutorialSaysWhyTheServiceDoesNotStart(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile("(?s)```sh\n(.*?)```").FindSubmatch(page)
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	address := taken.Listener.Addr().String()
	if printed := paste(t, address, string(first[1])); !strings.Contains(printed, "remit: cannot listen on "+address) {
		t.Errorf("it says %s", printed)
	}
}

// paste runs commands in one shell, with the service at this address, and returns what they print. All must succeed.
func paste(t *testing.T, address, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", commands)
	for _, name := range []string{"PATH", "HOME", "GOFLAGS", "GOPROXY", "GOCACHE", "GOMODCACHE"} {
		if value, set := os.LookupEnv(name); set {
			shell.Env = append(shell.Env, name+"="+value)
		}
	}
	shell.Env = append(shell.Env, "TMPDIR="+t.TempDir(), "REMIT_LISTEN="+address, "REMIT_ADDR=http://"+address)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stop := func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) } // with what it left running
	shell.Cancel, shell.WaitDelay = stop, 10*time.Second
	output, err := shell.CombinedOutput()
	_ = stop() // nothing is left of a page that works
	if err != nil {
		t.Fatalf("%v:\n%s", err, output)
	}
	return string(output)
}

package cli_test

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"remit/client"
	"remit/test/redistest"
	"remit/test/serviceproc"
)

const quick = "--interval=100ms"

func TestWatchDrawsInPlaceUntilTheSessionHasEnded(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	session := s.newSession("--max-actions", "4", "--max-value-usd", "2")
	w := s.open(80, "session", "watch", session, quick)
	w.shows("   0%  0 used of 4\n")
	s.charge(session, "--value-usd", "1", "--count", "2")
	w.shows("  50%  2 used of 4\n")
	s.charge(session, "--value-usd", "1", "--count", "2")
	w.shows(" 100%  2 used of 2 USD\n")
	s.good("session", "end", session)
	w.exits(0)
	screen := w.screen()
	has(t, screen, `\Acompleted  session `+session+`$`, `^actions  █+ 100%  4 used of 4$`, `^value    █+ 100%  2 used of 2 USD$`, `^time     ░+   0%  over after \d+s$`)
	if lines := strings.Count(strings.TrimRight(screen, "\n"), "\n") + 1; lines != 4 {
		t.Errorf("%d lines stay, want those of the last drawing:\n%s", lines, screen)
	}
	text := w.written()
	if !strings.Contains(text, "\x1b[31m█") || !strings.HasSuffix(text, "\x1b[?25h") {
		t.Errorf("no red bar, or the cursor stays hidden: %q", text)
	}
}

func TestWatchFollowsTheWidthOfTheWindow(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	w := s.open(80, "session", "watch", s.newSession("--max-actions", "4"), quick)
	w.shows("0 used of 4\n")
	must(0, pty.Setsize(w.file, &pty.Winsize{Cols: 20, Rows: 24}))(t)
	w.shows("actions  ░░░░░░░ 0%\n")
}

func TestInterruptingWatchLeavesTheTerminalClean(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	session := s.newSession("--max-actions", "4")
	for name, key := range map[string]string{"Ctrl-C": "\x03", `Ctrl-\`: "\x1c"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := s.with(t, nil).open(80, "session", "watch", session, quick)
			w.shows("0 used of 4\n")
			w.types(key)
			w.exits(130)
			if text := w.written(); !strings.HasSuffix(text, "\x1b[?25h") {
				t.Errorf("the cursor stays hidden: %q", text)
			}
			if screen := w.screen(); !strings.Contains(screen, "0 used of 4\n") || strings.Contains(screen, "^") {
				t.Errorf("the last drawing is gone, or stays with a mark:\n%s", screen)
			}
		})
	}
}

// cursorShown reports whether the cursor is, after all that was written.
func cursorShown(text string) bool {
	return strings.LastIndex(text, "\x1b[?25h") >= strings.LastIndex(text, "\x1b[?25l")
}

func TestAStoppedWatchShowsTheCursorAndContinuesBelow(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	session := s.newSession("--max-actions", "4")
	bash := s.command()
	script := `set -m; "$0" session watch "$1" ` + quick + `; echo "stopped by $?"; read -r; fg; echo "ended by $?"`
	bash.Path, bash.Args = must(exec.LookPath("bash"))(t), []string{"bash", "-c", script, bash.Path, session}
	w := openWindow(t, 80, bash)
	w.shows("0 used of 4\n")
	w.types("\x1a") // the key Ctrl-Z
	w.shows("stopped by ")
	if text := w.written(); !cursorShown(text) || strings.Contains(w.screen(), "^Z") {
		t.Errorf("the cursor stays hidden, or a mark stays: %q", text)
	}
	s.charge(session)
	w.types("\n")
	w.shows("1 used of 4\n")
	if screen := w.screen(); cursorShown(w.written()) || strings.Index(screen, "stopped by ") > strings.Index(screen, "1 used of 4") {
		t.Errorf("the cursor is shown in the drawing, or that is above what the shell wrote:\n%s", screen)
	}
	w.types("\x1a") // fg returns
	w.shows("ended by ")
	if !cursorShown(w.written()) {
		t.Error("stopped again, it hides the cursor")
	}
}

func TestWatchWithoutColourOrUnicode(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	s.env["NO_COLOR"], s.env["LC_ALL"] = "1", "C"
	session := s.newSession("--max-actions", "4")
	s.charge(session)
	w := s.open(80, "session", "watch", session, quick)
	w.shows("1 used of 4\n")
	if text := w.written(); regexp.MustCompile("\x1b\\[[0-9;]*m").MatchString(text) || !strings.Contains(text, "###...") {
		t.Errorf("%q", text)
	}
}

func TestWatchReportsAnOutageAndContinues(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	session := s.newSession("--max-actions", "4")
	r := redistest.NewProxy(t, strings.TrimPrefix(serviceURL(t), "http://"))
	s.env["REMIT_ADDR"] = "http://" + r.Address
	r.Delay(session, 4*time.Second) // so long a poll waits for the first response, but for no other
	w := s.open(80, "session", "watch", session, quick)
	w.shows("0 used of 4\n")
	r.Delay(session, 0)
	r.GoDown()
	w.shows("since ")
	has(t, w.screen(), `^since \d\d:\d\d:\d\d: no response from http://`+r.Address, `0 used of 4$`)
	s.charge(session)
	r.ComeUp(t, r.Upstream())
	w.shows("1 used of 4\n")
	if strings.Contains(w.screen(), "no response") {
		t.Errorf("it is still away:\n%s", w.screen())
	}
}

// A permanent error must end the watch.
func TestWatchEndsWhenItsCredentialDoes(t *testing.T) {
	t.Parallel()
	s := newTerminal(t)
	org := s.object("org", "create", "acme")
	s.env["REMIT_API_KEY"] = org["api_key"].(string)
	w := s.open(80, "session", "watch", s.newSession("--max-actions", "4"), quick)
	w.shows("0 used of 4\n")
	s.good("org", "rotate-key", org["id"].(string), "--grace=0")
	w.exits(exitFailed)
	has(t, w.screen(), `^remit: invalid_api_key: `)
}

func TestWatchPrintsALinePerChangeWithoutATerminal(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	session := s.newSession("--max-actions", "4", "--max-value-usd", "2")
	r := redistest.NewProxy(t, strings.TrimPrefix(serviceURL(t), "http://"))
	s.env["REMIT_ADDR"] = "http://" + r.Address
	command := s.command("session", "watch", session, quick)
	var stdout, stderr serviceproc.Output
	command.Stdout, command.Stderr = &stdout, &stderr
	must(0, command.Start())(t)
	prints := func(s *serviceproc.Output, text string) {
		t.Helper()
		await(t, s.String, func() bool { return strings.Contains(s.String(), text) })
	}
	prints(&stdout, "actions 0/4  value 0/2 USD")
	s.charge(session, "--value-usd", "0.37")
	prints(&stdout, "actions 1/4  value 0.37/2 USD")
	r.GoDown()
	prints(&stderr, "no response from http://"+r.Address)
	r.ComeUp(t, r.Upstream())
	prints(&stderr, "responds again")
	s.env["REMIT_ADDR"] = serviceURL(t)
	s.good("session", "end", session)
	must(0, command.Wait())(t)
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if len(lines) != 3 || strings.Contains(stdout.String(), "\x1b") {
		t.Errorf("want a line for each change, and nothing else:\n%s", &stdout)
	}
	has(t, lines[2], `^\S+Z  completed  actions 1/4  value 0.37/2 USD  expires \S+Z$`)
}

func TestWatchPrintsADocumentPerChange(t *testing.T) {
	t.Parallel()
	s := ofOrganization(t)
	session := s.newSession("--max-actions", "4")
	command := s.command("session", "watch", session, quick, "--json")
	var stdout serviceproc.Output
	command.Stdout = &stdout
	must(0, command.Start())(t)
	await(t, stdout.String, func() bool { return strings.Count(stdout.String(), "\n") == 1 })
	s.charge(session)
	await(t, stdout.String, func() bool { return strings.Count(stdout.String(), "\n") == 2 })
	must(0, command.Process.Signal(syscall.SIGINT))(t)
	_ = command.Wait() // its status is checked
	wantEqual(t, "the exit code", command.ProcessState.ExitCode(), 130)
	for i, line := range strings.Split(strings.TrimSpace(stdout.String()), "\n") {
		var info client.SessionInfo
		if err := json.Unmarshal([]byte(line), &info); err != nil || info.ID != session || info.ActionCount != int64(i) {
			t.Errorf("%v: %s", err, line)
		}
	}
}

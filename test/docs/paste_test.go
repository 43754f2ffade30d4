package docs

import (
	"context"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"remit/test/serviceproc"
	"remit/test/suite"
	"remit/test/tool"
)

// shells are those into which people paste what the pages show, without personal settings. An interactive zsh,
// the shell of macOS, takes # for a command.
var shells = map[string][]string{
	"bash": {"--norc", "--noprofile", "-i"},
	"dash": {"-i"},
	"zsh":  {"-f", "-i"},
}

// inEachShell runs a test in bash, and in the long run in each of the shells.
func inEachShell(t *testing.T, test func(t *testing.T, shell string)) {
	t.Helper()
	pasted := []string{"bash"}
	if suite.Long {
		pasted = slices.Sorted(maps.Keys(shells))
	}
	for _, shell := range pasted {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			test(t, shell)
		})
	}
}

// blocksOf returns the commands of a page, block after block.
func blocksOf(t *testing.T, page string) string {
	t.Helper()
	text := must(os.ReadFile(page))(t)
	var commands strings.Builder
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(text, -1) {
		commands.Write(block[1])
	}
	return commands.String()
}

// misread matches the messages of a shell that misreads the text of a page.
var misread = regexp.MustCompile(`command not found|not found: |[Nn]o matches found|parse error|[Ss]yntax error|bad pattern|unmatched|event not found|bad substitution`)

// paste types commands into an interactive shell, and returns what its terminal then shows.
func paste(t *testing.T, shell, commands string, environment ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // building the program is part of the tutorial
	defer cancel()
	cmd := exec.CommandContext(ctx, tool.Path(t, shell), shells[shell]...)
	for _, name := range []string{"PATH", "HOME", "GOFLAGS", "GOPROXY", "GOCACHE", "GOMODCACHE"} {
		if value, set := os.LookupEnv(name); set {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir(), "TERM=dumb", "PS1=", "PS2=", "LC_ALL=C.UTF-8")
	cmd.Env = append(cmd.Env, environment...)
	// The shell leads a session of its own, in which each of its jobs is a process group.
	stop := func() error { return exec.Command("pkill", "-KILL", "-s", strconv.Itoa(cmd.Process.Pid)).Run() }
	cmd.Cancel = stop
	terminal := must(pty.StartWithSize(cmd, &pty.Winsize{Cols: 500, Rows: 50}))(t)
	shown := new(serviceproc.Output)
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(shown, terminal) // ends with an error once the shell has closed its side
	}()
	// zsh needs a second exit while a job is still ending.
	must(io.WriteString(terminal, "stty -echo\n"+commands+"\nexit 0\nexit 0\n"))(t)
	err := cmd.Wait()
	_ = stop() // fails when the page has left nothing running
	select {
	case <-read: // all that was shown
	case <-time.After(10 * time.Second):
		t.Error("something that the page started still holds the terminal")
	}
	_ = terminal.Close()
	if err != nil {
		t.Fatalf("%s: %v:\n%s", shell, err, shown)
	}
	text := strings.ReplaceAll(shown.String(), "\r\n", "\n")
	if found := misread.FindString(text); found != "" {
		t.Errorf("%s says %q:\n%s", shell, found, text)
	}
	return text
}

func wantPrinted(t *testing.T, printed string, answers ...string) {
	t.Helper()
	for _, answer := range answers {
		if !strings.Contains(printed, answer) {
			t.Errorf("the commands print %s, not %s", printed, answer)
		}
	}
}

// comment matches one on a line of commands. An interactive zsh runs it.
var comment = regexp.MustCompile(`(?m)(^|\s)#(\s.*)?$`)

// Every block that can be pasted is free of comments: the page says beside it what there is to say.
func TestNoBlockOfCommandsHasAComment(t *testing.T) {
	t.Parallel()
	blocks := 0
	eachFile(t, []string{".md"}, func(path, text string) {
		for _, block := range regexp.MustCompile("(?ms)^ *```(?:sh|bash|shell|console)\n(.*?)^ *```").FindAllStringSubmatch(text, -1) {
			blocks++
			commands := regexp.MustCompile(`(?s)<<'(\w+)'\n.*?\n(PYTHON|EOF)\n`).ReplaceAllString(block[1], "") // a file is no commands
			if found := comment.FindString(commands); found != "" {
				t.Errorf("%s: %s", path, strings.TrimSpace(found))
			}
		}
	})
	if blocks < 20 {
		t.Errorf("only %d blocks were found", blocks)
	}
}

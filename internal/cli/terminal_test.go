package cli_test

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"remit/test/serviceproc"
)

func await(t *testing.T, what func() string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come about:\n%s", what())
		}
	}
}

// window is a pseudo terminal in which remit runs, and its content.
type window struct {
	t    *testing.T
	file *os.File
	cmd  *exec.Cmd

	raw  serviceproc.Output
	gone chan struct{} // closed when the program has ended and all it wrote is in raw
}

func (s *terminal) open(columns int, args ...string) *window {
	s.t.Helper()
	return openWindow(s.t, columns, s.command(args...))
}

func openWindow(t *testing.T, columns int, cmd *exec.Cmd) *window {
	t.Helper()
	w := &window{t: t, cmd: cmd, gone: make(chan struct{})}
	w.cmd.Stdin = nil // the terminal
	w.cmd.Env = append(w.cmd.Env, "TERM=xterm-256color")
	w.file = must(pty.StartWithSize(w.cmd, &pty.Winsize{Cols: uint16(columns), Rows: 24}))(t)
	go func() {
		_, _ = io.Copy(&w.raw, w.file) // ends with an error when the other side has closed, on Linux
		_ = w.cmd.Wait()               // its status is checked
		close(w.gone)
	}()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // fails when it has ended
		<-w.gone
		_ = w.file.Close()
	})
	return w
}

func (w *window) types(keys string) {
	w.t.Helper()
	must(w.file.WriteString(keys))(w.t)
}

func (w *window) written() string { return w.raw.String() }

func (w *window) shows(text string) {
	w.t.Helper()
	await(w.t, w.screen, func() bool { return strings.Contains(w.screen(), text) })
}

func (w *window) exits(want int) {
	w.t.Helper()
	<-w.gone // the command has a deadline
	if exit := w.cmd.ProcessState.ExitCode(); exit != want {
		w.t.Errorf("exit %d, want %d:\n%s", exit, want, w.screen())
	}
}

// screen is what a terminal makes of what was written: as much of ECMA-48 as the program uses, and anything else is shown
// as it is, so that a test sees it.
func (w *window) screen() string {
	rows, row, column := [][]rune{nil}, 0, 0
	text := []rune(w.written())
	for i := 0; i < len(text); i++ {
		switch r := text[i]; {
		case r == '\r':
			column = 0
		case r == '\n':
			if row++; row == len(rows) {
				rows = append(rows, nil)
			}
		case r == '\x1b' && i+1 < len(text) && text[i+1] == '[':
			end := i + 2
			for end < len(text) && (text[end] < '@' || text[end] > '~') {
				end++
			}
			if end == len(text) {
				return asText(rows) // the rest of the sequence is yet to come
			}
			count, _ := strconv.Atoi(string(text[i+2 : end]))
			switch text[end] {
			case 'A':
				row = max(row-count, 0)
			case 'J':
				rows = rows[:row+1]
				rows[row] = rows[row][:min(column, len(rows[row]))]
			case 'K':
				rows[row] = rows[row][:min(column, len(rows[row]))]
			case 'm', 'h', 'l':
			default:
				rows[row] = append(rows[row], text[i:end+1]...)
			}
			i = end
		default:
			for len(rows[row]) <= column {
				rows[row] = append(rows[row], ' ')
			}
			rows[row][column] = r
			column++
		}
	}
	return asText(rows)
}

func asText(rows [][]rune) string {
	var text strings.Builder
	for _, row := range rows {
		text.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	return text.String()
}

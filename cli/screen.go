package cli

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Sequences of ECMA-48, which all terminals of today understand.
const (
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
	eraseToEnd  = "\x1b[J"
	eraseOfLine = "\x1b[K"
)

// widthUnknown is the width of a terminal that does not tell.
const widthUnknown = 80

// screen draws views over each other in a terminal, from where the cursor stood. Nothing above that is touched, and what was
// drawn last stays when it is closed.
type screen struct {
	out *os.File
	end func() // of what leaveWhenStopped began

	mu    sync.Mutex // of all that is written, and of what was
	drawn []line
}

// newScreen is to be closed.
func newScreen(out *os.File) *screen {
	s := &screen{out: out}
	s.end = s.leaveWhenStopped()
	return s
}

// isTerminal reports whether a file is a terminal that can be drawn on.
func isTerminal(file *os.File) bool {
	return term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}

// look is what the terminal and the environment allow now: its window may have changed.
func (s *screen) look() look {
	width, _, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width < 1 {
		width = widthUnknown
	}
	return look{width: width, unicode: isUnicode(os.Getenv), colour: os.Getenv("NO_COLOR") == ""}
}

// isUnicode reports whether the locale's characters are Unicode's.
func isUnicode(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // in the order in which POSIX asks them
		if locale := strings.ToUpper(getenv(name)); locale != "" {
			return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
		}
	}
	return false
}

// show draws a view in the place of the one before.
func (s *screen) show(v view) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.look()
	lines := v.draw(l)
	_, err := s.out.WriteString(redraw(s.drawn, lines, l))
	s.drawn = lines
	return err
}

// redraw is what replaces one drawing by the next.
func redraw(before, now []line, l look) string {
	var text strings.Builder
	text.WriteString(hideCursor)
	if rows := rowsOf(before, l.width); rows > 0 {
		fmt.Fprintf(&text, "\r\x1b[%dA", rows)
	}
	for _, line := range now {
		text.WriteString(line.text(l.colour) + eraseOfLine + "\r\n")
	}
	text.WriteString(eraseToEnd)
	return text.String()
}

// rowsOf is how many rows of the terminal lines take up, now that it is so wide: a narrower window has wrapped them.
func rowsOf(lines []line, width int) int {
	rows := 0
	for _, line := range lines {
		rows += max((line.columns()+width-1)/width, 1)
	}
	return rows
}

func (s *screen) close() {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave()
}

// leave gives the cursor back, at the start of a line without the ^C or ^Z that the terminal itself has written there. When the
// terminal has gone there is nobody to tell.
func (s *screen) leave() { _, _ = s.out.WriteString("\r" + eraseOfLine + showCursor) }

package cli

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Control sequences of ECMA-48 (and DEC for the cursor).
const (
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
	eraseToEnd  = "\x1b[J"
	eraseOfLine = "\x1b[K"
)

// defaultWidth is the assumed width of a terminal that does not report it.
const defaultWidth = 80

// screen draws each drawing in place of the previous one, from the line of the cursor. It does not touch the lines above, and
// leaves the last drawing when it is closed.
type screen struct {
	out *os.File
	end func() // ends leaveWhenStopped

	mu    sync.Mutex // guards writes and drawn
	drawn []line
}

// newScreen returns a screen. Close it.
func newScreen(out *os.File) *screen {
	s := &screen{out: out}
	s.end = s.leaveWhenStopped()
	return s
}

// isTerminal reports whether a file is a terminal that can be drawn on.
func isTerminal(file *os.File) bool {
	return term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}

// style reads the style on each call, because the window may have changed.
func (s *screen) style() style {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width < 1 {
		width = defaultWidth
	}
	return style{width: width, height: height, unicode: isUnicode(os.Getenv), colour: os.Getenv("NO_COLOR") == ""}
}

// isUnicode reports whether the locale uses UTF-8.
func isUnicode(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // in the order of POSIX
		if locale := strings.ToUpper(getenv(name)); locale != "" {
			return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
		}
	}
	return false
}

// draw draws in place of the previous drawing.
func (s *screen) draw(drawing func(style) []line) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	style := s.style()
	lines := drawing(style)
	_, err := s.out.WriteString(redraw(s.drawn, lines, style))
	s.drawn = lines
	return err
}

// redraw returns the text that replaces one drawing by the next.
func redraw(before, now []line, style style) string {
	var text strings.Builder
	text.WriteString(hideCursor)
	if rows := rowsOf(before, style.width); rows > 0 {
		fmt.Fprintf(&text, "\r\x1b[%dA", rows)
	}
	for _, line := range now {
		text.WriteString(line.text(style.colour) + eraseOfLine + "\r\n")
	}
	text.WriteString(eraseToEnd)
	return text.String()
}

// rowsOf returns how many rows of the terminal the lines occupy at this width: a narrower window has wrapped them.
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

// leave shows the cursor again and erases the ^C or ^Z that the terminal has written. It ignores errors: the terminal may be
// gone.
func (s *screen) leave() { _, _ = s.out.WriteString("\r" + eraseOfLine + showCursor) }

package cli

import (
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

const columnGap = 2 // spaces

// writeTable writes rows of equal length, aligned by the width of their text in a terminal, which no cell controls.
func writeTable(to io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			row[i] = printable(row[i])
			widths[i] = max(widths[i], columnsOf(row[i]))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			text.WriteString(cell)
			if i < len(row)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-columnsOf(cell)+columnGap))
			}
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(to, text.String())
	return err
}

// columnsOf returns the width of a text in a terminal.
func columnsOf(text string) int {
	n := 0
	for _, r := range text {
		n += columns(r)
	}
	return n
}

// columns returns 2 for wide East Asian characters and emoji, 0 for combining marks, and 1 otherwise.
func columns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

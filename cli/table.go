package cli

import (
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// betweenColumns is how many spaces are.
const betweenColumns = 2

// writeTable writes rows of as many cells each, aligned by the columns that their text takes up in a terminal.
func writeTable(to io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columnsOf(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			text.WriteString(cell)
			if i < len(row)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-columnsOf(cell)+betweenColumns))
			}
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(to, text.String())
	return err
}

// columnsOf is how many columns of a terminal text takes up.
func columnsOf(text string) int {
	n := 0
	for _, r := range text {
		n += columns(r)
	}
	return n
}

// columns is two for the wide characters of East Asia and emoji, and none for marks that are put on the character before.
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

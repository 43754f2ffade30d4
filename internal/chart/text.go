package chart

import (
	"cmp"
	"html"
	"strings"
	"unicode"
)

const (
	longestName  = 64 // characters
	longestTitle = 200
)

// name returns a stranger's text as one short line of HTML or SVG text.
func name(text string) string { return html.EscapeString(label(text)) }

// label is name as plain text.
func label(text string) string { return cmp.Or(cut(text, longestName), "(no name)") }

// heading returns a title as one line of HTML, which may also be the value of an attribute in double quotes.
func heading(text string) string { return html.EscapeString(cut(text, longestTitle)) }

// cut returns text on one line of at most so many characters, without control characters and without those that change the
// direction of what follows.
func cut(text string, most int) string {
	if bytes := 8 * most; len(text) > bytes { // so that a long text costs no more than a short one
		text = text[:bytes] + "…"
	}
	var line strings.Builder
	length := 0
	for _, r := range strings.ToValidUTF8(text, "") {
		switch {
		case unicode.IsSpace(r):
			r = ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), unicode.Is(unicode.Noncharacter_Code_Point, r):
			continue
		}
		if length++; length > most {
			line.WriteRune('…')
			break
		}
		line.WriteRune(r)
	}
	return strings.TrimSpace(line.String())
}

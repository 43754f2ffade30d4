package lua

import (
	"regexp"
	"strings"
)

// joins is the line of a script whose replies are joined. It stands after the header.
const joins = "--@joined\n"

var arrayReply = regexp.MustCompile(`^return \{([^}]*)\}(?m:$)`)

// joined makes one text of every array that a script returns, if it says so: its values with line breaks between. What a
// value is that may be nil is an empty line then. An array costs Redis and its client one string for each value, and Redis a
// table that grows; see docs/decisions/0043-layout-of-sessions.md.
func joined(script string) string {
	if !strings.Contains(script, joins) {
		return script
	}
	return eachWord(unjoined(script), []string{"return {"}, arrayReply, func(match []string) string {
		return "return " + join(split(match[1]))
	})
}

// unjoined is a script as an operation of another, which stores and returns its replies as arrays.
func unjoined(script string) string { return strings.Replace(script, joins, "", 1) }

// join returns the expression of a text of these values. Literals become one literal with the line breaks about them.
func join(values []string) string {
	var parts []string
	literal := ""
	for i, value := range values {
		if i > 0 {
			literal += `\n`
		}
		if strings.HasPrefix(value, "'") && strings.HasSuffix(value, "'") && strings.Count(value, "'") == 2 {
			literal += strings.Trim(value, "'")
			continue
		}
		parts = append(parts, "'"+literal+"'", "("+value+" or '')")
		literal = ""
	}
	if literal != "" {
		parts = append(parts, "'"+literal+"'")
	}
	return strings.Join(parts, " .. ")
}

// split splits at the commas outside brackets and quotes.
func split(text string) []string {
	var words []string
	start, depth, quoted := 0, 0, false
	for i, char := range text {
		switch {
		case char == '\'':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("([{", char):
			depth++
		case strings.ContainsRune(")]}", char):
			depth--
		case char == ',' && depth == 0:
			words = append(words, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	if rest := strings.TrimSpace(text[start:]); rest != "" {
		words = append(words, rest)
	}
	return words
}

package lua

import (
	"regexp"
	"slices"
	"strings"
)

// Every process makes the texts of all scripts when it starts, also one that just prints its version. A regular expression over
// whole scripts would take most of that time, so these look for its words first.

// eachLine replaces the lines with the word that the pattern matches, which begins with ^ and ends with \n.
func eachLine(text, word string, pattern *regexp.Regexp, replace func(match []string) string) string {
	var out strings.Builder
	for {
		at := strings.Index(text, word)
		if at < 0 {
			out.WriteString(text)
			return out.String()
		}
		from, to := strings.LastIndexByte(text[:at], '\n')+1, len(text)
		if end := strings.IndexByte(text[at:], '\n'); end >= 0 {
			to = at + end + 1
		}
		out.WriteString(text[:from])
		if match := pattern.FindStringSubmatch(text[from:to]); match != nil {
			out.WriteString(replace(match))
		} else {
			out.WriteString(text[from:to])
		}
		text = text[to:]
	}
}

// eachWord replaces what begins with one of the words and the pattern matches, which begins with ^. A word that is the end of a
// longer one is none.
func eachWord(text string, words []string, pattern *regexp.Regexp, replace func(match []string) string) string {
	var out strings.Builder
	for from := 0; ; {
		at := next(text, from, words)
		if at < 0 {
			out.WriteString(text[from:])
			return out.String()
		}
		out.WriteString(text[from:at])
		match := []string(nil)
		if at == 0 || !isOfWord(text[at-1]) {
			match = pattern.FindStringSubmatch(text[at:])
		}
		if match == nil {
			out.WriteByte(text[at])
			from = at + 1
			continue
		}
		out.WriteString(replace(match))
		from = at + len(match[0])
	}
}

// next returns where the first of the words is, at or behind a place; -1: nowhere.
func next(text string, from int, words []string) int {
	var places []int
	for _, word := range words {
		if at := strings.Index(text[from:], word); at >= 0 {
			places = append(places, from+at)
		}
	}
	if len(places) == 0 {
		return -1
	}
	return slices.Min(places)
}

func isOfWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// header returns the comments with which a script opens.
func header(text string) string {
	length := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			break
		}
		length += len(line)
	}
	return text[:length]
}

// withoutComments removes the lines that are comments.
func withoutComments(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimLeft(line, " "), "--") || !strings.HasSuffix(line, "\n") {
			out.WriteString(line)
		}
	}
	return out.String()
}

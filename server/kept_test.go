package server_test

import (
	"regexp"
	"strings"
)

// usageKey begins a key of the accounts of usage, which an instance writes a moment after the requests that they are about.
var usageKey = regexp.MustCompile(`^- "?[^ ]*:(oq:\{|oh$)`)

// kept is all that Redis holds, but for the accounts of usage.
func (s setup) kept() string {
	var kept strings.Builder
	ofUsage := false
	for line := range strings.Lines(s.mini.Dump()) {
		if strings.HasPrefix(line, "- ") {
			ofUsage = usageKey.MatchString(strings.TrimSpace(line))
		}
		if !ofUsage {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

package lua

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	luaTokens = regexp.MustCompile(`--[^\n]*|'(?:\\.|[^'\\\n])*'|[.:$]?[A-Za-z_]\w*|\n *|=+|[^\s]`)
	luaWords  = set("and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not", "or", "repeat",
		"return", "then", "true", "until", "while", "redis", "string", "math", "unpack", "ipairs", "pairs", "tonumber", "table", "select")
)

// namesOf returns the names that a block takes from the script, and those that it sets for what follows. Names that fill it in ($key)
// are neither, and functions of the files that scripts include are not listed.
func namesOf(block string, functions map[string]bool) (takes, sets []string) {
	filled := holes.ReplaceAllStringFunc(block, func(hole string) string { return "filled_" + hole[1:] })
	taken, set, own := map[string]bool{}, map[string]bool{}, map[string]bool{}
	words := luaTokens.FindAllString(expand(filled), -1)
	depth, declares, inside := 0, false, false
	for i, word := range words {
		switch {
		case strings.HasPrefix(word, "\n"):
			depth, declares = len(word)-1, false
		case word == "local" || word == "for":
			declares, inside = true, depth > 0 || word == "for"
		case word == "=" || word == "in":
			declares = false
		case !regexp.MustCompile(`^[A-Za-z_]`).MatchString(word) || luaWords[word] || functions[word] || strings.HasPrefix(word, "filled_"):
		case declares:
			own[word], set[word] = true, set[word] || !inside
		case assigned(words[i+1:]) && !own[word]:
			line := words[i+1:]
			if end := slices.IndexFunc(line, func(w string) bool { return strings.HasPrefix(w, "\n") }); end >= 0 {
				line = line[:end]
			}
			taken[word] = taken[word] || !set[word] && slices.Contains(line, word)
			set[word] = true
		case !own[word] && !set[word]:
			taken[word] = true
		}
	}
	maps.DeleteFunc(set, func(_ string, outlives bool) bool { return !outlives })
	return slices.Sorted(maps.Keys(taken)), slices.Sorted(maps.Keys(set))
}

// assigned reports whether a name before these words is on the left of an assignment.
func assigned(words []string) bool {
	for i, word := range words {
		if word == "=" {
			return true
		}
		if i%2 == 0 && word != "," {
			return false
		}
	}
	return false
}

// A block uses the locals of the script where it stands. So it says which, at the end of its opening.
func TestEveryBlockSaysWhatItTakesAndSets(t *testing.T) {
	t.Parallel()
	functions := map[string]bool{}
	for _, file := range of(t, "include") {
		for _, match := range regexp.MustCompile(`(?m)^local (?:function )?(\w+)`).FindAllStringSubmatch(read(file), -1) {
			functions[match[1]] = true
		}
	}
	for _, file := range of(t, "block") {
		text := read(file)
		opening := purpose.FindString(text)
		takes, sets := namesOf(text[len(opening):], functions)
		var want string
		if len(takes) > 0 {
			want = " Takes " + strings.Join(takes, ", ") + "."
		}
		if len(sets) > 0 {
			want += " Sets " + strings.Join(sets, ", ") + "."
		}
		if said := strings.ReplaceAll(strings.TrimSpace(opening), "\n-- ", " "); !strings.HasSuffix(said, want) {
			t.Errorf("%s does not end its opening with %q", file, want)
		}
	}
}

package sdk

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	goMethod = regexp.MustCompile(`(?m)^func \(\w+ \*?(?:Client|Organization|Agent|Session|Transaction|Lease)\) ([A-Z]\w*)\(`)
	goWord   = regexp.MustCompile(`[A-Z]+(?:[a-z0-9]+|$)|[A-Z]+`)
	// lastWord matches the method's name in Organization.CreateAgent or session.begin(params, work).
	lastWord = regexp.MustCompile(`([A-Za-z_]+)(?:\(|$)`)
)

// readAll returns the text of the files that match, but for Go's tests.
func readAll(t *testing.T, pattern string) string {
	t.Helper()
	files := must(filepath.Glob(pattern))(t)
	if len(files) == 0 {
		t.Fatalf("no file matches %s", pattern)
	}
	var all strings.Builder
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			all.Write(must(os.ReadFile(file))(t))
		}
	}
	return all.String()
}

func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for _, word := range regexp.MustCompile(`\w+`).FindAllString(text, -1) {
		words[word] = true
	}
	return words
}

// docs/sdks.md says that calls have one name in each language's spelling, and lists those that differ.
func TestCallsHaveOneNameInEachLanguagesSpelling(t *testing.T) {
	t.Parallel()
	page, golang := readAll(t, "../docs/sdks.md"), readAll(t, "../client/*.go")+readAll(t, "../client/prices/*.go")
	typescript, python := wordsOf(readAll(t, "typescript/src/*.ts")), wordsOf(readAll(t, "python/src/remit/*.py"))
	calls := goMethod.FindAllStringSubmatch(golang, -1)
	if len(calls) < 60 {
		t.Fatalf("only %d calls were found", len(calls))
	}
	for _, call := range calls {
		words := goWord.FindAllString(strings.NewReplacer("APIKey", "ApiKey", "CSV", "Csv").Replace(call[1]), -1)
		snake := strings.ToLower(strings.Join(words, "_"))
		camel := strings.ToLower(words[0]) + strings.Join(words[1:], "")
		for language, has := range map[string]bool{"TypeScript": typescript[camel], "Python": python[snake]} {
			if !has && !strings.Contains(page, call[1]+"`") {
				t.Errorf("%s: %s is neither %s nor %s there, and docs/sdks.md does not list it", language, call[1], camel, snake)
			}
		}
	}
	same, rows := readAll(t, "testdata/same/*.txt"), 0
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		call := strings.TrimSpace(cells[0])
		if rows++; !strings.Contains(same, "\n"+call+" → ") {
			t.Errorf("docs/sdks.md has a row for %q, which no program does", call)
		}
		for i, source := range []map[string]bool{wordsOf(golang), typescript, python} {
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[i+1], -1) {
				if used := lastWord.FindStringSubmatch(name[1]); used == nil || !source[used[1]] {
					t.Errorf("docs/sdks.md, %s: the SDK has no %s", call, name[1])
				}
			}
		}
	}
	if rows == 0 {
		t.Error("docs/sdks.md has no table of calls")
	}
}

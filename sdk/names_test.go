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
)

// docs/sdks.md says that calls have one name in each language's spelling, and lists those that differ.
func TestCallsHaveOneNameInEachLanguagesSpelling(t *testing.T) {
	t.Parallel()
	read := func(pattern string) string {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		var all strings.Builder
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		return all.String()
	}
	page, typescript, python := read("../docs/sdks.md"), read("typescript/src/*.ts"), read("python/src/remit/*.py")
	calls := goMethod.FindAllStringSubmatch(read("../client/*.go"), -1)
	if len(calls) < 60 {
		t.Fatalf("only %d calls were found", len(calls))
	}
	for _, call := range calls {
		words := goWord.FindAllString(strings.NewReplacer("APIKey", "ApiKey", "CSV", "Csv").Replace(call[1]), -1)
		snake := strings.ToLower(strings.Join(words, "_"))
		camel := strings.ToLower(words[0]) + strings.Join(words[1:], "")
		for language, has := range map[string]bool{
			"TypeScript": regexp.MustCompile(`\b` + camel + `\b`).MatchString(typescript),
			"Python":     regexp.MustCompile(`\b` + snake + `\b`).MatchString(python),
		} {
			if !has && !strings.Contains(page, call[1]+"`") {
				t.Errorf("%s: %s is neither %s nor %s there, and docs/sdks.md does not list it", language, call[1], camel, snake)
			}
		}
	}
}

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mustRow   = regexp.MustCompile(`(?m)^\| (\d{4}) §[\d.]+ \| [^|]+ \| (.+) \|$`)
	namedTest = regexp.MustCompile("^`([a-z/]+)\\.((?:Test|Fuzz)\\w+)`$")
)

func TestEveryMustIsHeldByTestsThatExist(t *testing.T) {
	t.Parallel()
	page := must(os.ReadFile("test/interop/README.md"))(t)
	table := string(page)
	rows, sources := map[string]int{}, map[string]string{}
	for _, row := range mustRow.FindAllStringSubmatch(table, -1) {
		rows[row[1]]++
		for _, name := range strings.Split(row[2], ", ") {
			named := namedTest.FindStringSubmatch(name)
			if named == nil {
				t.Errorf("%s: %s names no test as `package.TestName`", row[0], name)
				continue
			}
			if _, read := sources[named[1]]; !read {
				sources[named[1]] = testsOf(t, named[1])
			}
			if !strings.Contains(sources[named[1]], "\nfunc "+named[2]+"(") {
				t.Errorf("RFC %s names %s, which does not exist", row[1], name)
			}
		}
	}
	if lines := strings.Count(table, "\n| ") - 2; lines != len(mustRow.FindAllString(table, -1)) {
		t.Errorf("the table has %d rows, of which only %d are read", lines, len(mustRow.FindAllString(table, -1)))
	}
	for _, rfc := range []string{"7521", "7523", "8693", "8707", "9068", "9449", "9728"} {
		if rows[rfc] == 0 {
			t.Errorf("no row is about RFC %s", rfc)
		}
	}
}

func testsOf(t *testing.T, directory string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("%s has no tests", directory)
	}
	var all strings.Builder
	for _, file := range files {
		text := must(os.ReadFile(file))(t)
		all.Write(text)
	}
	return all.String()
}

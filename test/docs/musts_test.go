package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	mustRow   = regexp.MustCompile(`(?m)^\| (\d{4}) §[\d.]+ \| [^|]+ \| (.+) \|$`)
	namedTest = regexp.MustCompile("^`([a-z/]+\\.(?:Test|Fuzz)\\w+)`$")
)

func TestEveryMustIsHeldByTestsThatExist(t *testing.T) {
	t.Parallel()
	table := string(must(os.ReadFile("test/interop/README.md"))(t))
	there, rows := tests(t), map[string]int{}
	all := mustRow.FindAllStringSubmatch(table, -1)
	for _, row := range all {
		rows[row[1]]++
		for _, name := range strings.Split(row[2], ", ") {
			if named := namedTest.FindStringSubmatch(name); named == nil || !there[named[1]] {
				t.Errorf("RFC %s names %s: want a test that exists, as `package.TestName`", row[1], name)
			}
		}
	}
	if lines := strings.Count(table, "\n| ") - 2; lines != len(all) {
		t.Errorf("the table has %d rows, of which only %d are read", lines, len(all))
	}
	for _, rfc := range []string{"7521", "7523", "8693", "8707", "9068", "9449", "9728"} {
		if rows[rfc] == 0 {
			t.Errorf("no row is about RFC %s", rfc)
		}
	}
}

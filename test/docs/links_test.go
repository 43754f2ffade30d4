package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)|runbook_url: https://docs\.example\.com/(\S+)`)
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)

	// testName matches a test on a page. Shorter names are those of methods, such as TestWebhook.
	testName = regexp.MustCompile("`(?:[a-z/]+\\.)?((?:Test|Benchmark|Fuzz)[A-Z]\\w{10,})(?:/[^`]*)?`")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
)

// TestEveryLinkOfThePagesLeadsToAFileAndAHeading follows the links between the repository's pages and from its alerts to them, and no link
// to elsewhere.
func TestEveryLinkOfThePagesLeadsToAFileAndAHeading(t *testing.T) {
	t.Parallel()
	links := 0
	eachFile(t, []string{".md", ".yml"}, func(path, text string) {
		for _, found := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			file, anchor, _ := strings.Cut(found[1]+found[2], "#")
			if strings.Contains(found[1], ":") {
				continue
			}
			links++
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if found[2] != "" {
				target = filepath.Join("docs", file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", path, err)
			} else if anchor != "" && !slices.Contains(anchorsOf(t, target), anchor) {
				t.Errorf("%s: %s has no heading #%s", path, target, anchor)
			}
		}
	})
	if links < 200 {
		t.Errorf("only %d links were found", links)
	}
}

// anchorsOf returns the anchors that GitHub makes of a page's headings.
func anchorsOf(t *testing.T, page string) (anchors []string) {
	t.Helper()
	text := must(os.ReadFile(page))(t)
	for _, found := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
		anchors = append(anchors, strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-"))
	}
	return anchors
}

// tests returns the names of all tests, and each with its directory: TestX and server.TestX.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	eachFile(t, []string{".go"}, func(path, text string) {
		for _, found := range testFunc.FindAllStringSubmatch(text, -1) {
			there[found[1]], there[filepath.Dir(path)+"."+found[1]] = true, true
		}
	})
	return there
}

func TestEveryTestThatAPageNamesExists(t *testing.T) {
	t.Parallel()
	there, named := tests(t), 0
	eachFile(t, []string{".md"}, func(path, text string) {
		for _, found := range testName.FindAllStringSubmatch(text, -1) {
			if named++; !there[found[1]] {
				t.Errorf("%s names %s, which does not exist", path, found[1])
			}
		}
	})
	if named < 100 {
		t.Errorf("the pages name only %d tests", named)
	}
}

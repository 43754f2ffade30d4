package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"remit/internal/redisproc"
	"remit/test/serviceproc"
	"remit/test/suite"
)

// TestMain runs the tests at the top of the repository, where readers run the commands of the pages.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !suite.Long { // the race detector keeps the processors busy by itself
		suite.RunAtOnce(4)
	}
	os.Exit(serviceproc.Tests{M: m}.Run())
}

func freePort(t *testing.T) string {
	t.Helper()
	return strconv.Itoa(must(redisproc.FreePort())(t)) // outside the ephemeral range, so that no connection of another test takes it
}

// shownOn returns what a pattern and its groups match on a page.
func shownOn(t *testing.T, page, pattern string) []string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(string(must(os.ReadFile(page))(t)))
	if found == nil {
		t.Fatalf("%s does not show %s", page, pattern)
	}
	return found
}

// eachFile calls look with every file of the repository that has one of the endings. Hidden directories and installed modules are no
// part of it. It opens them by absolute paths: go test, which takes the outcome of tests from its cache while what they open is the same,
// does not see that TestMain changes the directory. The top is left out of that, because git changes what is in it.
func eachFile(t *testing.T, endings []string, look func(path, text string)) {
	t.Helper()
	top := must(os.Getwd())(t)
	atTop := must(os.ReadDir("."))(t)
	for _, entry := range atTop {
		err := filepath.WalkDir(filepath.Join(top, entry.Name()), func(path string, entry os.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "node_modules" || strings.HasPrefix(entry.Name(), ".")):
				return filepath.SkipDir
			case entry.IsDir() || !slices.Contains(endings, filepath.Ext(path)):
				return nil
			}
			text, err := os.ReadFile(path)
			look(strings.TrimPrefix(path, top+"/"), string(text))
			return err
		})
		noError(t, err)
	}
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

var noError = suite.NoError

package interop

import (
	"os/exec"
	"os/user"
	"strings"
	"testing"
)

// tool returns the path of a program that the tests need. Where it is missing the test fails, or skips under -short.
func tool(t *testing.T, name string) string {
	t.Helper()
	for _, candidate := range []string{name, "/usr/sbin/" + name} { // Debian keeps servers out of a user's PATH
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	if testing.Short() {
		t.Skipf("%s is not installed", name)
	}
	t.Fatalf("%s is not installed; scripts/install-tools.sh installs it", name)
	return ""
}

func currentUser(t *testing.T) string {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return me.Username
}

// indented sets what a program has printed apart from the test's own words.
func indented(output []byte) string {
	return "    | " + strings.ReplaceAll(strings.TrimSpace(string(output)), "\n", "\n    | ")
}

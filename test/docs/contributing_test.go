package docs

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestContributingNamesFilesThatAreThere(t *testing.T) {
	t.Parallel()
	text := must(os.ReadFile("CONTRIBUTING.md"))(t)
	// In code style or as a link: with a slash in it, or with the ending of a file.
	named := regexp.MustCompile("(?:`|\\]\\()([A-Za-z0-9_./-]*(?:/|\\.(?:go|md|yml|json|lua|acl|mod|ts|py)))(?:`|\\))").FindAllSubmatch(text, -1)
	if len(named) < 20 {
		t.Fatalf("it names only %d files", len(named))
	}
	for _, room := range []string{"lua/", "redisstore/", "server/", "openapi/", "client/", "sdk/typescript/src/", "sdk/python/src/remit/", "internal/cli/"} {
		if !slices.ContainsFunc(named, func(match [][]byte) bool { return strings.HasPrefix(string(match[1]), room) }) {
			t.Errorf("the way of an endpoint does not come by %s", room)
		}
	}
	for _, match := range named {
		name := string(match[1])
		if name == "dist/" { // made by make release
			continue
		}
		if _, err := os.Stat(name); err != nil {
			t.Errorf("it names %s: %v", name, err)
		}
	}
}

func TestMakeAloneShowsEveryTarget(t *testing.T) {
	t.Parallel()
	text := must(os.ReadFile("Makefile"))(t)
	help := must(exec.Command("make", "--no-print-directory").Output())(t)
	targets := regexp.MustCompile(`(?m)^([a-zA-Z0-9_-]+):`).FindAllSubmatch(text, -1)
	if len(targets) < 10 {
		t.Fatalf("only %d targets were found", len(targets))
	}
	phony := strings.Fields(strings.SplitN(string(text), "\n", 2)[0])
	for _, match := range targets {
		target := string(match[1])
		if !regexp.MustCompile(`(?m)^  make ` + target + `\s+\S`).Match(help) {
			t.Errorf("make does not tell of %s:\n%s", target, help)
		}
		if !slices.Contains(phony, target) {
			t.Errorf("%s is not in .PHONY: a file of that name would stand in for it", target)
		}
	}
}

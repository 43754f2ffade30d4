// Command mutants breaks one rule after the other in a copy of the repository, and runs the tests that must fail. mutants.txt lists
// the rules. It prints a line for each, and exits with 1 unless every one is caught.
//
//	go run ./test/mutants                 all sixty, in about 16 minutes on two cores
//	go run ./test/mutants -only 'budget'  those whose name matches
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// limit bounds the tests of one mutant, compilation not counted.
const limit = 60 * time.Second

//go:embed mutants.txt
var list string

// mutant is a rule that is broken by one change.
type mutant struct {
	name, file    string
	text, instead string // text is in the file once
	pkg, tests    string // the package whose tests with these names (a regular expression) must fail
}

var form = regexp.MustCompile(`(?s)^([^\n]+)\n([^\n]+)\n- (.+)\n\+ ?(.*)\n(\S+) ([^\n]+)$`)

// parse reads mutants from blocks that empty lines separate; the first block is a comment.
func parse(list string) (all []mutant, err error) {
	_, list, _ = strings.Cut(list, "\n\n")
	for block := range strings.SplitSeq(strings.TrimSpace(list), "\n\n") {
		parts := form.FindStringSubmatch(block)
		if parts == nil {
			return nil, fmt.Errorf("not a mutant:\n%s", block)
		}
		all = append(all, mutant{parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]})
	}
	return all, nil
}

func main() {
	log.SetFlags(0)
	only := flag.String("only", "", "`regular expression` that the names of the mutants must match")
	flag.Parse()
	chosen, err := regexp.Compile(*only)
	if err != nil {
		log.Fatal(err)
	}
	escaped, err := run(context.Background(), chosen)
	if err != nil {
		log.Fatal(err)
	}
	if escaped > 0 {
		log.Fatalf("%d are not caught", escaped)
	}
}

// run runs the chosen mutants, and returns how many were not caught.
func run(ctx context.Context, chosen *regexp.Regexp) (escaped int, err error) {
	all, err := parse(list)
	if err != nil {
		return 0, err
	}
	root, err := os.MkdirTemp("", "remit-mutants-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(root)
	if err := copyRepository(ctx, root); err != nil {
		return 0, err
	}
	for _, m := range all {
		if !chosen.MatchString(m.name) {
			continue
		}
		began := time.Now()
		verdict, err := m.run(ctx, root)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m.name, err)
		}
		if verdict != caught {
			escaped++
		}
		fmt.Printf("%-8s %4.0f s  %s\n", verdict, time.Since(began).Seconds(), m.name)
	}
	return escaped, nil
}

// copyRepository copies the files that belong to the repository, as they are now.
func copyRepository(ctx context.Context, root string) error {
	copying := exec.CommandContext(ctx, "sh", "-ec", `git ls-files -z --cached --others --exclude-standard --deduplicate |
		xargs -0 sh -ec 'for file; do if [ -e "$file" ]; then cp --parents -p "$file" "$0"; fi; done' "$1"`, "sh", root)
	if output, err := copying.CombinedOutput(); err != nil {
		return fmt.Errorf("copying the repository: %w\n%s", err, output)
	}
	return nil
}

const (
	caught  = "caught"
	escapes = "ESCAPES"
)

// run breaks the rule, runs the tests, and mends it again.
func (m mutant) run(ctx context.Context, root string) (verdict string, err error) {
	file := filepath.Join(root, m.file)
	whole, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if strings.Count(string(whole), m.text) != 1 {
		return "", fmt.Errorf("%s does not have this once: %s", m.file, m.text)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(whole), m.text, m.instead, 1)), 0o644); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.WriteFile(file, whole, 0o644)) }()
	output, failed := goTest(ctx, root, m.pkg, m.tests)
	switch {
	case failed == nil:
		return escapes, nil
	case strings.Contains(output, "--- FAIL"), strings.Contains(output, "panic: test timed out"):
		return caught, nil
	}
	return "", fmt.Errorf("the tests did not run: %w\n%s", failed, output)
}

// goTest runs tests of a package until one fails.
func goTest(ctx context.Context, root, pkg, tests string) (output string, err error) {
	test := exec.CommandContext(ctx, "go", "test", "-count=1", "-failfast", "-timeout", limit.String(), "-run", tests, pkg)
	test.Dir = root
	test.Env = append(os.Environ(), "GOFLAGS=-pgo=off")
	text, err := test.CombinedOutput()
	return string(text), err
}

package docs

import (
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// hidden are words that hide who acts: name the caller, the instance, the tenant or the reader instead.
const hidden = `nobody|somebody|anybody|everybody|whom|whoever|whomever`

var unwanted = regexp.MustCompile(`(?i)\b(` + hidden + `|told|turned away|let in|given free|lest|hence|books)\b`)

func TestCommentsSayWhoActs(t *testing.T) {
	t.Parallel()
	comments := 0
	eachFile(t, []string{".go", ".lua"}, func(path, text string) {
		for line, comment := range commentsOf(path, []byte(text)) {
			comments++
			if word := unwanted.FindString(comment); word != "" {
				t.Errorf("%s:%d says %q: %s", path, line, word, strings.TrimSpace(comment))
			}
		}
	})
	if comments < 10_000 {
		t.Errorf("only %d lines of comments are found", comments)
	}
}

func TestTextsForUsersSayWhoActs(t *testing.T) {
	t.Parallel()
	inTexts := regexp.MustCompile(`(?i)\b(` + hidden + `)\b`)
	lines := 0
	eachFile(t, []string{".md", ".json", ".yml", ".yaml", ".conf", ".env", ".sh", ".ts", ".py"}, func(path, text string) {
		if directory := filepath.Dir(path); slices.ContainsFunc([]string{"test", "tests", "testdata", "decisions"}, func(name string) bool {
			return slices.Contains(strings.Split(directory, "/"), name)
		}) {
			return
		}
		for i, line := range strings.Split(text, "\n") {
			lines++
			if word := inTexts.FindString(line); word != "" {
				t.Errorf("%s:%d says %q: %s", path, i+1, word, strings.TrimSpace(line))
			}
		}
	})
	if lines < 10_000 {
		t.Errorf("only %d lines are found", lines)
	}
}

// commentsOf returns the comments in a file by their lines.
func commentsOf(path string, text []byte) map[int]string {
	found := map[int]string{}
	if strings.HasSuffix(path, ".lua") {
		for i, line := range strings.Split(string(text), "\n") {
			if _, comment, has := strings.Cut(line, "--"); has {
				found[i+1] = comment
			}
		}
		return found
	}
	var s scanner.Scanner
	files := token.NewFileSet()
	file := files.AddFile(path, -1, len(text))
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			return found
		}
		if kind == token.COMMENT {
			for i, line := range strings.Split(literal, "\n") {
				found[files.Position(at).Line+i] += line
			}
		}
	}
}

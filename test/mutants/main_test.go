package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The text of each mutant must be where the list says, or nothing would be broken.
func TestEachOfTheSixtyMutantsFindsItsText(t *testing.T) {
	t.Parallel()
	all, err := parse(list)
	if err != nil || len(all) != 60 {
		t.Fatalf("%d mutants: %v", len(all), err)
	}
	for _, m := range all {
		whole, err := os.ReadFile(filepath.Join("..", "..", m.file))
		if err != nil || strings.Count(string(whole), m.text) != 1 {
			t.Errorf("%s: %s does not have this once: %s (%v)", m.name, m.file, m.text, err)
		}
	}
}

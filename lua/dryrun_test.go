package lua

import (
	"maps"
	"regexp"
	"slices"
	"testing"
)

func TestADryRunLetsExactlyTheReadsThrough(t *testing.T) {
	t.Parallel()
	passed := map[string]bool{}
	for _, match := range regexp.MustCompile(`\b([A-Z]+) = 1\b`).FindAllStringSubmatch(read("kernel/dry_run"), -1) {
		passed[match[1]] = true
	}
	if !maps.Equal(passed, readCommands) {
		t.Errorf("it lets %v through, want %v", slices.Sorted(maps.Keys(passed)), slices.Sorted(maps.Keys(readCommands)))
	}
}

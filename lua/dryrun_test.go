package lua

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestADryRunContainsItsWholeOperation(t *testing.T) {
	t.Parallel()
	composed := DrySource("budgets/charge_session")
	own := include(expand(unjoined(shift(read("budgets/charge_session"), 0, 0))))
	if !strings.Contains(composed, own) || strings.Contains(composed, "--@operation") {
		t.Error("it does not")
	}
}

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

package lua

import (
	"regexp"
	"strings"
	"testing"
)

var (
	anyIndex    = regexp.MustCompile(`\b(KEYS|ARGV)\[([^]]*)\]`)
	anyUnpack   = regexp.MustCompile(`\bunpack\((KEYS|ARGV)[^)]*\)`)
	ofClock     = regexp.MustCompile(`\blocal (now = |\w+ = time\[)`)
	offsetIndex = regexp.MustCompile(`^(keys|arguments)_before \+ \d+$`)
)

// variants returns the text of each script that can be merged, by itself and with an idempotency key.
func variants(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, name := range of(t, "script") {
		text := read(name)
		if takesAnyNumber(text) || within.MatchString(text) || !keyNames.MatchString(text) {
			continue
		}
		texts[name], _, _ = MergedSource(name)
		texts[name+", keyed"], _, _ = MergedIdempotentSource(name)
		texts[name+", with a proof"], _, _ = MergedProvenSource(name)
	}
	if len(texts) < 40 {
		t.Fatalf("only %d texts", len(texts))
	}
	return texts
}

// What a script takes must be its own call's, and what it reads of the clock the same for all.
func TestAMergedScriptTakesTheKeysAndArgumentsOfItsOwnCall(t *testing.T) {
	t.Parallel()
	for name, text := range variants(t) {
		head, body, found := strings.Cut(text, "local function one_call(keys_before, arguments_before)\n")
		reads := strings.Count(head, "local now = ") // of the clock
		if !found || ofClock.MatchString(body) || reads > 1 {
			t.Errorf("%s: it is not put together as it should be", name)
		}
		for _, index := range anyIndex.FindAllStringSubmatch(body, -1) {
			before := offsetIndex.FindStringSubmatch(index[2])
			if before == nil || (before[1] == "keys") != (index[1] == "KEYS") {
				t.Errorf("%s takes %s", name, index[0])
			}
		}
		for _, call := range anyUnpack.FindAllString(body, -1) {
			if strings.Count(call, "_before + ") != 2 {
				t.Errorf("%s takes %s", name, call)
			}
		}
	}
}

// A script with locals of these names would take what is not its own.
func TestNoScriptUsesTheNamesOfAMergedOne(t *testing.T) {
	t.Parallel()
	reserved := regexp.MustCompile(`\b(keys_before|arguments_before|one_call|run_each|redis_call|string_format)\b`)
	for _, file := range of(t, "script", "block", "include") {
		if file != "include/run_each" && reserved.MatchString(read(file)) {
			t.Errorf("%s does", file)
		}
	}
}

// A function that is shared stands once, before the first that calls it.
func TestAMergedScriptHasEachFunctionItIncludesOnce(t *testing.T) {
	t.Parallel()
	for name, text := range variants(t) {
		seen := map[string]bool{}
		for _, function := range regexp.MustCompile(`(?m)^local function (\w+)`).FindAllStringSubmatch(text, -1) {
			if seen[function[1]] {
				t.Errorf("%s has %s twice", name, function[1])
			}
			seen[function[1]] = true
		}
	}
}

package redisstore

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"remit/lua"
)

// Scripts and lists give states as arrays. Both sides read them by names, which must be in the same order.
func TestStatesHaveTheOrderThatScriptsGiveThemIn(t *testing.T) {
	t.Parallel()
	transactionState := []string{
		stateStatus: "st", stateValue: "v", stateOverage: "ov", stateCommitted: "cm", stateRolledBack: "rb", stateReason: "re",
		statePostState: "po", stateHold: "hv",
	}
	usage := []string{
		usageActions: "n", usageMaxActions: "ma", usageValue: "v", usageMaxValue: "mv", usageHeld: "h", usageExpires: "x",
		usageBudget: "gb",
	}
	stored := map[string]string{} // the names of fields in Redis, by the hash and their names in scripts
	for _, line := range regexp.MustCompile(`(?m)^(\w+) (\w+) (\w+)$`).FindAllStringSubmatch(string(must(os.ReadFile("../lua/fields.txt"))(t)), -1) {
		stored[line[1]+" "+line[3]] = line[2]
	}
	for _, test := range []struct {
		script, array string
		want          []string
	}{
		{"budgets/peek_session", `local state = redis\.call\('HMGET', session, ([^)]*)\)`, sessionFields},
		{"budgets/get_session", `unpack\(redis\.call\('HMGET', session,\s+([^)]*)\)\)`, slices.Concat(sessionFields[:sessionSuspended], []string{sessionFields[sessionFlags]})},
		{"budgets/get_session", `return \{'ok', string\.format\('%d', now\), [^}]*parent, noted_flags, '',\s+([^}]*)\}`, sessionFields[sessionActions:sessionLeased]},
		{"budgets/get_transaction", `local state = \{([^}]*)\}`, transactionState},
		{"budgets/charge_session", `\{'limit', over, ([^}]*)\}`, usage},
	} {
		match := regexp.MustCompile(test.array).FindStringSubmatch(lua.IdempotentSource(test.script)) // whose replies are arrays
		if match == nil {
			t.Errorf("%s gives no such array", test.script)
			continue
		}
		given := strings.FieldsFunc(strings.ReplaceAll(match[1], "'", ""), func(r rune) bool { return strings.ContainsRune(", \n", r) })
		for i, name := range given {
			given[i] = cmp.Or(stored["session "+name], stored[strings.Replace(name, "_", " ", 1)], name)
		}
		if !slices.Equal(given, test.want) {
			t.Errorf("%s gives %q, the store reads %q", test.script, given, test.want)
		}
	}
	if !slices.Equal(listedState[:listedHold], transactionState[:statePostState]) || listedHold != statePostState {
		t.Errorf("lists read %q", listedState)
	}
}

package lua

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"remit/test/suite"
)

// headerKey matches the prefix of a key in a header: zset sh:{cell}:<session>.
var headerKey = regexp.MustCompile(`(?m)^-- KEYS\[.*?\] = \w+ +(?:hash|zset|stream|string) (\w+:)\{cell\}`)

// The headers name the keys as the store spells them, and not as scripts call their fields.
func TestHeadersNameTheKeysOfTheStore(t *testing.T) {
	t.Parallel()
	var spelled strings.Builder
	for _, file := range []string{"../redisstore/internal/kernel/keys.go", "../internal/redisclient/keys.go"} {
		spelled.Write(suite.Must(os.ReadFile(file))(t))
	}
	found := 0
	for _, name := range of(t, "script") {
		for _, key := range headerKey.FindAllStringSubmatch(read(name), -1) {
			found++
			if !strings.Contains(spelled.String(), `"`+key[1]+`"`) && !strings.Contains(spelled.String(), `"`+key[1]+`{"`) {
				t.Errorf("%s: no key of the store begins with %s", name, key[1])
			}
		}
	}
	if found < 200 {
		t.Errorf("only %d keys were found", found)
	}
}

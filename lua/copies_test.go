package lua

import (
	"io/fs"
	"strings"
	"testing"
)

// The check of an API key stands in every script that an organization's key opens, because a script is one file. The
// copies must stay equal to the letter.
func TestAPIKeysAreCheckedAlikeInEveryScript(t *testing.T) {
	t.Parallel()
	const check = `local in_grace = key_hash == stored[2] and now < tonumber(stored[3] or 0)
if key_hash ~= stored[1] and not in_grace then
  return {'invalid_api_key'}
end
`
	const read = `local stored = redis.call('HMGET', organization, 'key', 'previous_key', 'previous_until'`
	names, err := fs.Glob(files, "*.lua")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range names {
		if name == "replace_api_key.lua" {
			continue // runs on the operator's word, without a key
		}
		source := Source(strings.TrimSuffix(name, ".lua"))
		if !strings.Contains(source, "{'invalid_api_key'}\n") && !strings.Contains(source, "'previous_key'") {
			continue
		}
		checked++
		if !strings.Contains(source, check) || !strings.Contains(source, read) {
			t.Errorf("%s checks an API key in its own way", name)
		}
	}
	if checked != 8 {
		t.Errorf("%d scripts check an API key, not the eight that are known", checked)
	}
}

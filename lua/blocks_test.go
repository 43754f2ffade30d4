package lua

import (
	"io/fs"
	"path"
	"strings"
	"testing"
)

func TestEveryBlockSaysWhatItIsForAndIsRepeated(t *testing.T) {
	t.Parallel()
	used := map[string]int{}
	for _, file := range matching(t, "*.lua", "block/*.lua", "include/*.lua") {
		for _, line := range blocks.FindAllStringSubmatch(read(strings.TrimSuffix(file, ".lua")), -1) {
			used[line[2]]++
		}
	}
	for _, file := range matching(t, "block/*.lua") {
		name := strings.TrimSuffix(path.Base(file), ".lua")
		text := read("block/" + name)
		if !sentences.MatchString(strings.TrimSuffix(purpose.FindString(text), "\n")) {
			t.Errorf("%s opens with no purpose", file)
		}
		if used[name] < 2 {
			t.Errorf("%s stands in %d places; a block is for what stands in several", file, used[name])
		}
	}
}

func TestNoBlockIsLeftInAScript(t *testing.T) {
	t.Parallel()
	for _, file := range matching(t, "*.lua") {
		name := strings.TrimSuffix(file, ".lua")
		for _, source := range []string{Source(name), IdempotentSource(name), SealedIdempotentSource(name)} {
			if strings.Contains(source, "--@block") || holes.MatchString(source) {
				t.Errorf("%s: a block is left, or a word to fill in", file)
			}
		}
	}
}

func TestEveryScriptThatTakesAnAPIKeyChecksIt(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, file := range matching(t, "*.lua") {
		text := read(strings.TrimSuffix(file, ".lua"))
		takes := strings.Contains(text, "] = credential ")
		checks := strings.Contains(text, "\n--@block api_key\n") || strings.Contains(text, "\n--@block refuse_api_key\n")
		if takes != checks {
			t.Errorf("%s takes an API key: %t; checks one: %t", file, takes, checks)
		}
		if checks {
			checked++
		}
	}
	if checked == 0 {
		t.Error("no script checks an API key")
	}
}

func TestABlockIsExpandedWhereItIsNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a()\n--@block extend_ttl key=purse\nb()\n": `a()
if redis.call('PTTL', purse) < kept then
  redis.call('PEXPIRE', purse, ttl)
end
b()
`,
		"  --@block hold_scopes held=mine\n": `  for scope in string.gmatch(scopes, '%S+') do
    if not string.find(' ' .. mine .. ' ', ' ' .. scope .. ' ', 1, true) then
      return {'scope_not_held', scope}
    end
  end
`,
	} {
		if got := expand(text); got != want {
			t.Errorf("%q is\n%s", text, got)
		}
	}
}

func TestABlockIsExpandedCompletely(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"--@block extend_ttl\n", "--@block extend_ttl kee=purse\n", "--@block extend_tll\n"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q expands", text)
				}
			}()
			expand(text)
		}()
	}
}

func matching(t *testing.T, patterns ...string) []string {
	t.Helper()
	var names []string
	for _, pattern := range patterns {
		found, err := fs.Glob(files, pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		names = append(names, found...)
	}
	return names
}

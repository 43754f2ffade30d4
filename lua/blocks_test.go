package lua

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestEveryBlockSaysWhatItIsForAndIsRepeated(t *testing.T) {
	t.Parallel()
	used := map[string]int{}
	for _, file := range of(t, "script", "block", "include") {
		for _, line := range blocks.FindAllStringSubmatch(read(file), -1) {
			used[line[2]]++
		}
	}
	for _, file := range of(t, "block") {
		name := path.Base(file)
		text := read(file)
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
	for _, file := range of(t, "script") {
		for _, source := range []string{Source(file), IdempotentSource(file), SealedIdempotentSource(file)} {
			if strings.Contains(source, "--@block") || holes.MatchString(source) {
				t.Errorf("%s: a block is left, or a word to fill in", file)
			}
		}
	}
}

func TestEveryScriptThatTakesAnAPIKeyChecksIt(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, file := range of(t, "script") {
		text := read(file)
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
		wantPanic(t, text, func() { expand(text) })
	}
}

// of returns the names of the files of some kinds: "block", "include", and "script" for all others.
func of(t *testing.T, kinds ...string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(files, ".", func(file string, entry fs.DirEntry, err error) error {
		kind := path.Base(path.Dir(file))
		if kind != "block" && kind != "include" {
			kind = "script"
		}
		if path.Ext(file) == ".lua" && slices.Contains(kinds, kind) {
			names = append(names, strings.TrimSuffix(file, ".lua"))
		}
		return err
	})
	if err != nil || len(names) < 20 {
		t.Fatalf("%q: %d files, %v", kinds, len(names), err)
	}
	return names
}

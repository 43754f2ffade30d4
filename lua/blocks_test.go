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

func TestTextsThatCannotBePutTogetherPanic(t *testing.T) {
	t.Parallel()
	for what, put := range map[string]func(){
		"no such script":                func() { Source("charge_sesion") },
		"no such block":                 func() { expand("--@block extend_tll\n") },
		"a block that nothing fills in": func() { expand("--@block extend_ttl\n") },
		"a block filled in otherwise":   func() { expand("--@block extend_ttl kee=purse\n") },
		"a script of many arguments":    func() { MergedSource("budgets/close_sessions") },
	} {
		t.Run(what, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it returns")
				}
			}()
			put()
		})
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

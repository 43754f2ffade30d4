package lua

import (
	"path"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// given are the globals that Redis gives a script and scripts use.
var given = []string{"ARGV", "KEYS", "ipairs", "math", "pairs", "redis", "select", "string", "table", "tonumber", "type",
	"unpack"}

// Redis raises an error when a script reads a global that it does not know, but only on the way that reads it; miniredis reads nil.
func TestNoScriptNamesAGlobalThatRedisDoesNotGive(t *testing.T) {
	t.Parallel()
	for _, name := range of(t, "script") {
		if strings.Contains(read(name), "--@operation") { // a part of others, which are compiled below
			continue
		}
		for _, source := range []string{Source(name), IdempotentSource(name)} {
			chunk, err := parse.Parse(strings.NewReader(source), name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			compiled, err := lua.Compile(chunk, name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, global := range globalsOf(compiled) {
				if !slices.Contains(given, global) {
					t.Errorf("%s names the global %s: is it a local of another name?", path.Base(name), global)
				}
			}
		}
	}
}

// globalsOf returns the globals that a function and those in it read or write.
func globalsOf(f *lua.FunctionProto) (names []string) {
	for _, instruction := range f.Code {
		if operation := int(instruction >> 26); operation == lua.OP_GETGLOBAL || operation == lua.OP_SETGLOBAL {
			names = append(names, f.Constants[instruction&0x3ffff].String())
		}
	}
	for _, inner := range f.FunctionPrototypes {
		names = append(names, globalsOf(inner)...)
	}
	return names
}

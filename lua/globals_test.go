package lua

import (
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"remit/test/suite"
)

// given are the globals that Redis gives a script and scripts use.
var given = []string{"ARGV", "KEYS", "ipairs", "math", "pairs", "redis", "select", "string", "table", "tonumber", "type",
	"unpack"}

// Redis raises an error when a script reads a global that it does not know, but only on the way that reads it; miniredis reads nil.
// Of some that it gives, scripts may not call any: tostring makes 1e+14 of a number, and miniredis lacks struct, or has it otherwise.
func TestEveryScriptIsPutTogetherAndNamesOnlyGivenGlobals(t *testing.T) {
	t.Parallel()
	texts := variants(t)
	for _, name := range of(t, "script") {
		if !within.MatchString(read(name)) { // else it is a part of others
			texts[name+", alone"], texts[name+", keyed alone"], texts[name+", sealed"] = Source(name), IdempotentSource(name), SealedIdempotentSource(name)
			texts[name+", with a proof, alone"], texts[name+", dry"] = ProvenSource(name), DrySource(name)
		}
	}
	for name, text := range texts {
		if strings.Contains(text, "--@") {
			t.Errorf("%s: a directive is left", name)
		}
		chunk := suite.Must(parse.Parse(strings.NewReader(text), name))(t)
		for _, global := range globalsOf(suite.Must(lua.Compile(chunk, name))(t)) {
			if !slices.Contains(given, global) && (global != "pcall" || !strings.Contains(text, "return run_each(")) {
				t.Errorf("%s names the global %s: is it a local of another name, or a function that is not included?", name, global)
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

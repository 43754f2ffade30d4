// Command show prints a script as Redis gets it, with its blocks and functions in their places: make show SCRIPT=charge_session.
// A call with an idempotency key or a proof, or one that is merged with others, runs inside a further text; see package lua.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"remit/lua"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: show SCRIPT, such as charge_session; at the top of the repository")
		os.Exit(2)
	}
	found, err := filepath.Glob("lua/*/" + filepath.Base(os.Args[1]) + ".lua")
	if err != nil || len(found) != 1 {
		fmt.Fprintf(os.Stderr, "show: no script %q in lua/\n", os.Args[1])
		os.Exit(1)
	}
	name := filepath.ToSlash(strings.TrimSuffix(strings.TrimPrefix(found[0], "lua/"), ".lua"))
	if room := filepath.Dir(name); room == "block" || room == "include" {
		fmt.Fprintf(os.Stderr, "show: %q is a part of scripts; read lua/%s.lua\n", os.Args[1], name)
		os.Exit(1)
	}
	fmt.Print(lua.Source(name))
}

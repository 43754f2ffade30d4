// Package lua holds the scripts that run inside Redis, one file per atomic operation.
//
// Each file opens with what it does, its KEYS, its ARGV, every reply it can give and what it writes; a test of this
// package holds those headers against the bodies. A refusal is an array that starts with a code of our own, never a
// Redis error: clients of Redis re-run scripts that fail with certain errors.
package lua

import (
	"embed"
	"fmt"
)

//go:embed *.lua
var files embed.FS

// Source returns the text of the script in the file name + ".lua". It panics when there is no such file: the names
// are constants of the program.
func Source(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("lua: no script %q", name))
	}
	return string(text)
}

// Package lua holds the scripts that run inside Redis, one file per atomic operation.
//
// Each file opens with what it does, its KEYS, its ARGV, every reply it can give and what it writes; a test of this
// package holds those headers against the bodies. A refusal is an array that starts with a code of our own, never a
// Redis error: clients of Redis re-run scripts that fail with certain errors.
//
// Redis that has reached its maxmemory refuses the first write of a script if that may take memory, and lets every later
// one through. So what takes authority away, or gives memory free, begins its writes with one that takes none and changes
// nothing, for no hash has a field without a name:
//
//	redis.call('HDEL', key, '')
//
// It stands where nothing can be refused any more, and only where what follows is small and bounded; see
// docs/decisions/0027-full-redis.md.
//
// What several operations do alike (an entry in the audit trail, the release of holds) is a function in a file under
// include, and stands where a script says --@include. idempotent.lua and idempotent_sealed.lua take a whole operation in at --@operation.
package lua

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed *.lua include/*.lua
var files embed.FS

var includes = regexp.MustCompile(`(?m)^--@include (\w+)\n`)

// Source returns the text of the script in the file name + ".lua", with what it includes. It panics when there is no
// such file: the names are constants of the program.
func Source(name string) string {
	return includes.ReplaceAllStringFunc(read(name), func(line string) string {
		return read("include/" + includes.FindStringSubmatch(line)[1])
	})
}

// IdempotentSource returns the script that runs the operation of the named one once for an idempotency key; see idempotent.lua.
func IdempotentSource(name string) string { return around("idempotent", name) }

// SealedIdempotentSource is IdempotentSource for an operation whose answer holds a credential; see idempotent_sealed.lua.
func SealedIdempotentSource(name string) string { return around("idempotent_sealed", name) }

func around(wrapper, name string) string {
	return strings.Replace(Source(wrapper), "--@operation\n", Source(name), 1)
}

func read(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("lua: no script %q", name))
	}
	return string(text)
}

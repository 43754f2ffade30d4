// Package lua holds the scripts that run inside Redis, one file per atomic operation, in the rooms that packages redisstore and server
// have too: kernel, identity, budgets, records, webhooks.
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
// docs/decisions/0027-full-redis.md. In a merged script (MergedSource) it also lets the calls behind it write, so a script
// with this write is merged only if all that it ever writes is small and bounded.
//
// Two kinds of shared text keep an operation in one file. What only one room uses is in that room; names are unique over all rooms.
//
//   - A block, in a file under block, is a passage that many scripts repeat: the check of an API key, the reading of the
//     clock. A line --@block NAME puts its text there, as if it stood in the script: it uses the script's locals, may
//     return from the script, and costs nothing. Words after NAME fill it in: with --@block extend_ttl key=holds, $key
//     in the block is holds.
//   - A function, in a file under include, is what several operations do alike in one step: an entry in the audit trail, the
//     release of a hold. A line --@include NAME puts it at the head of the script, which calls it; or, in a script that calls
//     it seldom, where few calls pass: every call that passes makes the function anew.
//
// A line --@read HASH NAME… reads fields of a hash into locals of these names. fields.txt has what Redis calls them, for hashes
// whose fields are short there; NAME may have HASH_ before it, and NAME=LOCAL reads the field whose name that local holds.
//
// What follows a directive may go on in lines that begin with --@ and two spaces.
//
// A line --@joined after the header makes of every reply one text of lines: {'ok', n, x} becomes 'ok', n and x with a line
// break between, and nil an empty line. That costs less, on both sides. All values are texts then, and one that may contain
// a line break stands last. Inside another script the operation still returns arrays: what is stored for an idempotency
// key is the same for every version.
//
// idempotent.lua, idempotent_sealed.lua, with_proof.lua and dry_run.lua take a whole operation in at --@operation. A script that
// many callers run at once has a second text, which runs it for several of them; see MergedSource.
package lua

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed fields.txt */*.lua */block/*.lua */include/*.lua
var files embed.FS

var (
	includes = regexp.MustCompile(`(?m)^ *--@include (\w+)\n`)
	blocks   = regexp.MustCompile(`(?m)^( *)--@block (\w+)((?: \w+=\S+)*)\n`)
	holes    = regexp.MustCompile(`\$[a-z]+`)
	reads    = regexp.MustCompile(`^( *)--@read (\w+) (.*)\n`)
	purpose  = regexp.MustCompile(`^(--[^@].*\n)*`)
	within   = regexp.MustCompile(`(?m)^--@operation KEYS\[(\d+)\] ARGV\[(\d+)\]\n`)
	indexes  = regexp.MustCompile(`^(KEYS|ARGV)\[(\d+)\]`)
	unpacks  = regexp.MustCompile(`^unpack\((KEYS|ARGV)(?:, (\d+))?\)`)
)

// Source returns the text of the script in the file name + ".lua", such as "budgets/charge_session", with its blocks
// and what it includes. It panics when there is no such file: the names are constants of the program.
func Source(name string) string { return joined(include(expand(read(name)))) }

// include puts the functions that a text names in their places.
func include(text string) string {
	return eachLine(text, "--@include ", includes, func(match []string) string { return function(match[1]) })
}

// function returns the text of an included file. Most scripts include the same few.
func function(name string) string {
	if text, made := functions.Load(name); made {
		return text.(string)
	}
	text := expand(read(shared("include", name)))
	functions.Store(name, text)
	return text
}

var functions sync.Map // of texts, by name

// expand puts the blocks that a text names in their places, indented as the lines that name them.
func expand(text string) string {
	text = strings.ReplaceAll(text, "\n--@  ", " ")
	text = eachLine(text, "--@read ", reads, func(match []string) string { return match[1] + reading(match[2], strings.Fields(match[3])) + "\n" })
	return eachLine(text, "--@block ", blocks, func(match []string) string {
		indent, name, words := match[1], match[2], match[3]
		text := read(shared("block", name))
		block := expand(fill(text[purpose.FindStringIndex(text)[1]:], words))
		if indent == "" {
			return block
		}
		return indent + strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", "\n"+indent) + "\n"
	})
}

// reading returns the statement that reads fields of a hash into locals. It panics when fields.txt lists the hash, and not a name.
func reading(hash string, names []string) string {
	locals, fields := make([]string, len(names)), make([]string, len(names))
	for i, name := range names {
		local, holder, held := strings.Cut(name, "=")
		locals[i], fields[i] = local, holder
		if !held {
			fields[i] = "'" + storedName(hash, local) + "'"
		}
	}
	return fmt.Sprintf("local %s = unpack(redis.call('HMGET', %s, %s))", strings.Join(locals, ", "), hash, strings.Join(fields, ", "))
}

// storedName returns what Redis calls the field of a hash that scripts read into this local.
func storedName(hash, local string) string {
	name := strings.TrimPrefix(local, hash+"_")
	names, short := storedNames()[hash]
	if !short {
		return name
	}
	if names[local] != "" { // it begins with the hash's name itself
		name = local
	}
	if names[name] == "" {
		panic(fmt.Sprintf("lua: fields.txt has no %s %s", hash, name))
	}
	return names[name]
}

// storedNames holds, by hash and by name in scripts, the names of fields in Redis.
var storedNames = sync.OnceValue(func() map[string]map[string]string {
	text, _ := files.ReadFile("fields.txt")
	byHash := map[string]map[string]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] == "#" {
			continue
		}
		if byHash[words[0]] == nil {
			byHash[words[0]] = map[string]string{}
		}
		byHash[words[0]][words[2]] = words[1]
	}
	return byHash
})

// fill replaces each $key of a block by the value that " key=value" gives it. It panics when that gives none.
func fill(block, words string) string {
	values := map[string]string{}
	for _, word := range strings.Fields(words) {
		key, value, _ := strings.Cut(word, "=")
		values["$"+key] = value
	}
	return holes.ReplaceAllStringFunc(block, func(hole string) string {
		if values[hole] == "" {
			panic(fmt.Sprintf("lua: no value for %s in %q", hole, block))
		}
		return values[hole]
	})
}

// IdempotentSource returns the script that runs the operation of the named one once for an idempotency key; see idempotent.lua.
func IdempotentSource(name string) string { return include(expand(around("kernel/idempotent", name))) }

// SealedIdempotentSource is IdempotentSource for an operation whose answer holds a credential; see idempotent_sealed.lua.
func SealedIdempotentSource(name string) string {
	return include(expand(around("kernel/idempotent_sealed", name)))
}

// ProvenSource returns the script that runs the operation of the named one once for a DPoP proof; see with_proof.lua.
func ProvenSource(name string) string { return include(expand(around("kernel/with_proof", name))) }

// DrySource returns the script that replies what the named one would, and does not write; see dry_run.lua.
func DrySource(name string) string { return include(expand(around("kernel/dry_run", name))) }

// around puts an operation into its place in a wrapper. That says which KEYS and ARGV are the operation's first.
func around(wrapper, name string) string {
	return eachLine(read(wrapper), "--@operation ", within, func(first []string) string {
		return shift(unjoined(read(name)), number(first[1])-1, number(first[2])-1)
	})
}

// shift makes a script take its KEYS and ARGV from behind so many others.
func shift(text string, keys, arguments int) string {
	by := map[string]int{"KEYS": keys, "ARGV": arguments}
	text = eachWord(text, []string{"KEYS[", "ARGV["}, indexes, func(match []string) string {
		return fmt.Sprintf("%s[%d]", match[1], number(match[2])+by[match[1]])
	})
	return eachWord(text, []string{"unpack("}, unpacks, func(match []string) string {
		return fmt.Sprintf("unpack(%s, %d)", match[1], max(number(match[2]), 1)+by[match[1]])
	})
}

// number returns what digits say, and 0 for none.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// shared returns the name of the file with a block or included text, wherever it is.
func shared(kind, name string) string {
	file, found := sharedFiles()[kind+"/"+name]
	if !found {
		panic(fmt.Sprintf("lua: no %s %q", kind, name))
	}
	return file
}

// sharedFiles returns the names of the files with blocks and included texts, by "block/NAME" and "include/NAME".
var sharedFiles = sync.OnceValue(func() map[string]string {
	byName := map[string]string{}
	for _, pattern := range []string{"block/*.lua", "include/*.lua", "*/block/*.lua", "*/include/*.lua"} {
		found, _ := fs.Glob(files, pattern)
		for _, file := range found {
			file = strings.TrimSuffix(file, ".lua")
			name := path.Join(path.Base(path.Dir(file)), path.Base(file))
			if byName[name] != "" {
				panic(fmt.Sprintf("lua: both %s and %s", byName[name], file))
			}
			byName[name] = file
		}
	}
	return byName
})

func read(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("lua: no script %q", name))
	}
	return string(text)
}

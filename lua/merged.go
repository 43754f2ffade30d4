package lua

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	keyNames      = regexp.MustCompile(`(?m)^-- KEYS\[(\d+)\] = `)
	argumentNames = regexp.MustCompile(`(?m)^-- ARGV\[(\d+)\] = `)
	ofAnyNumber   = regexp.MustCompile(`^(?:(KEYS|ARGV)\[[a-z]|unpack\(ARGV, \d+\))`)
)

// clock is where a script reads Redis's clock, with the lines behind it that make something of what it read.
var clock = regexp.MustCompile(`--@block now\n(?:local \w+ = time\[.*\n)*`)

const (
	// names that no script uses for anything else
	keysBefore, argumentsBefore = "keys_before", "arguments_before"

	// hoisted are the globals that calls use, and what they call most. A local costs them less, and is made once for all.
	hoisted = "local KEYS, ARGV, redis, string, math, unpack, pcall = KEYS, ARGV, redis, string, math, unpack, pcall\n" +
		"local redis_call, string_format = redis.call, string.format\n"
)

// MergedSource returns the script that runs the named one for several calls, and how many keys and arguments each has: its
// KEYS are those of the first call, then those of the second and so on, and so are its ARGV. It answers an array with the
// reply to each; see include/run_each.lua. It panics when the script takes a varying number of arguments.
func MergedSource(name string) (source string, keys, arguments int) {
	text := read(name)
	if takesAnyNumber(text) {
		panic(fmt.Sprintf("lua: calls of %q cannot be merged", name))
	}
	keys, arguments = highest(keyNames, text), highest(argumentNames, text)
	return merge(text, keys, arguments), keys, arguments
}

// takesAnyNumber reports whether a script takes a varying number of keys or arguments.
func takesAnyNumber(text string) bool {
	found := strings.Contains(text, "#KEYS") || strings.Contains(text, "#ARGV")
	eachWord(text, []string{"KEYS[", "ARGV[", "unpack("}, ofAnyNumber, func(match []string) string {
		found = true
		return match[0]
	})
	return found
}

// MergedIdempotentSource is MergedSource for the script that IdempotentSource returns.
func MergedIdempotentSource(name string) (source string, keys, arguments int) {
	return mergedAround("kernel/idempotent", name)
}

// MergedProvenSource is MergedSource for the script that ProvenSource returns.
func MergedProvenSource(name string) (source string, keys, arguments int) {
	return mergedAround("kernel/with_proof", name)
}

func mergedAround(wrapper, name string) (source string, keys, arguments int) {
	_, keys, arguments = MergedSource(name)
	first := within.FindStringSubmatch(read(wrapper))
	keys, arguments = keys+number(first[1])-1, arguments+number(first[2])-1
	return merge(around(wrapper, name), keys, arguments), keys, arguments
}

// byLocals calls what is hoisted.
var byLocals = strings.NewReplacer("redis.call(", "redis_call(", "string.format(", "string_format(")

// merge makes a function of a script's text. What all calls have in common stands before it, once: the functions that it
// includes, and the reading of the clock.
func merge(text string, keys, arguments int) string {
	body := withoutComments(joined(expand(clock.ReplaceAllString(text, ""))))
	var shared []string
	eachLine(expand(text)+"--@include run_each\n", "--@include ", includes, func(match []string) string {
		line := strings.TrimLeft(match[0], " ")
		if !slices.Contains(shared, line) { // an operation may include what its wrapper does
			shared = append(shared, line)
		}
		return ""
	})
	if readings := clock.FindAllString(text, -1); len(readings) > 0 { // an operation may read what its wrapper does, and more
		shared = append(shared, slices.MaxFunc(readings, func(a, b string) int { return len(a) - len(b) }))
	}
	return hoisted + byLocals.Replace(withoutComments(include(expand(strings.Join(shared, ""))))+
		fmt.Sprintf("local function one_call(%s, %s)\n%send\nreturn run_each(one_call, %d, %d)\n",
			keysBefore, argumentsBefore, behind(body, keys, arguments), keys, arguments))
}

// behind makes a script take its KEYS and ARGV from behind those of the calls before it.
func behind(text string, keys, arguments int) string {
	offset, count := map[string]string{"KEYS": keysBefore, "ARGV": argumentsBefore}, map[string]int{"KEYS": keys, "ARGV": arguments}
	text = eachWord(text, []string{"KEYS[", "ARGV["}, indexes, func(match []string) string {
		return fmt.Sprintf("%s[%s + %s]", match[1], offset[match[1]], match[2])
	})
	return eachWord(text, []string{"unpack("}, unpacks, func(match []string) string {
		of, first := offset[match[1]], max(number(match[2]), 1)
		return fmt.Sprintf("unpack(%s, %s + %d, %s + %d)", match[1], of, first, of, count[match[1]])
	})
}

// highest returns the highest index that a pattern finds in the header of a script.
func highest(pattern *regexp.Regexp, text string) int {
	most := 0
	for _, match := range pattern.FindAllStringSubmatch(header(text), -1) {
		most = max(most, number(match[1]))
	}
	return most
}

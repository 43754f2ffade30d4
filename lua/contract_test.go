package lua

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The Redis commands that scripts may call, by whether they write. Add a new one here.
var (
	readCommands = set("TIME", "EXISTS", "GET", "HEXISTS", "HGETALL", "HGET", "HMGET", "HLEN", "HRANDFIELD", "PTTL", "XLEN", "XRANGE",
		"ZCARD", "ZCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZSCORE", "ZREVRANGEBYLEX", "XREVRANGE")
	writeCommands = set("HSET", "HDEL", "DEL", "PEXPIRE", "SET", "UNLINK", "XADD", "XTRIM", "ZADD", "ZREM")
)

// refusedAfterAWrite are the codes that may follow a write: a reuse is refused and its family revoked, in one step; and
// outcome is no refusal.
var refusedAfterAWrite = set("reused", "outcome")

// forbidden are functions with which a refusal would look like an error of Redis. Those that lie, globals_test.go forbids.
var forbidden = regexp.MustCompile(`\bredis\.(error_reply|status_reply|pcall)\b`)

var (
	sentences   = regexp.MustCompile(`^-- [A-Z][a-z]+ .*(\n-- .+)*\.$`)
	headerName  = regexp.MustCompile(`(?m)^-- (KEYS|ARGV)\[(\d+)\] = (\w+)`)
	headerReply = regexp.MustCompile(`(?m)^-- (?:Reply:|      )  (\{'\w+'[^}]*\})`)
	headerWrite = regexp.MustCompile(`\b[A-Z]{3,}\b`)
	localNames  = regexp.MustCompile(`(?m)^local ([\w, ]+) = (.*)$`)
	indexed     = regexp.MustCompile(`\b(KEYS|ARGV)\[(\d+)\]`)
	unpacked    = regexp.MustCompile(`\bunpack\((KEYS|ARGV)\)`)
	returned    = regexp.MustCompile(`\breturn\b *(\{'\w+'[^}]*(?:\}|$))?`)
	opening     = regexp.MustCompile(`\b(then|do|function)\b`)
	called      = regexp.MustCompile(`redis\.call\(([^,)]*)(?:, ([^,)]*))?`)
	emptyWrite  = regexp.MustCompile(`redis\.call\('HDEL', \w+, ''\)`) // changes nothing; see lua.go
	comment     = regexp.MustCompile(`(?m) *--.*$`)
)

// mostArguments is how many arguments a script takes without saying why.
const mostArguments = 6

// script is a script's text with its blocks in it, taken apart. Shared are the functions of the files that it includes and those
// of its own. What they write, they write whatever the outcome: holds that are due, what the audit trail sees.
type script struct{ header, body, shared string }

var ownFunction = regexp.MustCompile(`(?ms)^local function .*?^end\n`)

// faults returns where a script breaks the contract that all of them keep, in words.
func faults(source string) []string {
	s := script{}
	for line := range strings.Lines(expand(source)) {
		switch include := includes.FindStringSubmatch(line); {
		case include != nil:
			s.shared += read(shared("include", include[1]))
		case line == joins:
		case s.body == "" && strings.HasPrefix(line, "--"):
			s.header += line
		default:
			s.body += line
		}
	}
	s.shared += strings.Join(ownFunction.FindAllString(s.body, -1), "")
	s.shared = comment.ReplaceAllString(s.shared, "")
	s.body = comment.ReplaceAllString(ownFunction.ReplaceAllString(s.body, ""), "")
	return slices.Concat(s.purpose(), s.names(), s.arguments(), s.replies(), s.functions(), s.calls(), s.fields(), s.writes(),
		s.refusals(), keyChecks(source))
}

// purpose checks the opening: a sentence or more, and an empty comment line.
func (s script) purpose() []string {
	text, _, found := strings.Cut(s.header, "\n--\n")
	if !found || !sentences.MatchString(text) {
		return []string{"it opens with no purpose: a sentence, and an empty comment line"}
	}
	return nil
}

// names holds the header's KEYS and ARGV against those of the body, and against the locals that take them.
func (s script) names() []string {
	var found []string
	for _, table := range []string{"KEYS", "ARGV"} {
		named, taken := s.named(table), s.taken(table)
		given, used := slices.Sorted(maps.Keys(named)), s.used(table)
		if !slices.Equal(given, used) || len(given) > 0 && given[len(given)-1] != len(given) {
			found = append(found, fmt.Sprintf("%s: the header names %v, the body uses %v", table, given, used))
		}
		for i, name := range taken {
			if named[i] != name {
				found = append(found, fmt.Sprintf("%s[%d] is %s in the header, %s in the body", table, i, named[i], name))
			}
		}
	}
	return found
}

// arguments checks that a script with many arguments gives a reason.
func (s script) arguments() []string {
	if count := len(s.named("ARGV")); count > mostArguments && !strings.Contains(s.header, "\n-- Arguments: ") {
		return []string{fmt.Sprintf("it takes %d arguments, and no line -- Arguments: says why", count)}
	}
	return nil
}

// keyChecks finds checks of an API key outside their block, in a script whose blocks are not expanded.
func keyChecks(source string) []string {
	if slices.ContainsFunc(returned.FindAllString(comment.ReplaceAllString(source, ""), -1), func(answer string) bool {
		return strings.Contains(answer, "'invalid_api_key'")
	}) {
		return []string{"it checks an API key in its own way, not by --@block refuse_api_key"}
	}
	return nil
}

// named returns what the header names, by its index.
func (s script) named(table string) map[int]string {
	names := map[int]string{}
	for _, match := range headerName.FindAllStringSubmatch(s.header, -1) {
		if match[1] == table {
			names[number(match[2])] = match[3]
		}
	}
	return names
}

// used returns which indexes the body uses.
func (s script) used(table string) []int {
	used := map[int]bool{}
	for _, match := range indexed.FindAllStringSubmatch(s.body, -1) {
		if match[1] == table {
			used[number(match[2])] = true
		}
	}
	for i := range s.taken(table) {
		used[i] = true
	}
	return slices.Sorted(maps.Keys(used))
}

// taken returns the locals that the body takes the table into, by the index that each takes.
func (s script) taken(table string) map[int]string {
	taken := map[int]string{}
	for _, match := range localNames.FindAllStringSubmatch(s.body, -1) {
		names, values := split(match[1]), split(match[2])
		if whole := unpacked.FindStringSubmatch(match[2]); whole != nil && whole[1] == table {
			for i, name := range names {
				taken[i+1] = name
			}
			continue
		}
		for i := range min(len(names), len(values)) {
			if one := indexed.FindStringSubmatch(values[i]); one != nil && one[1] == table {
				taken[number(one[2])] = names[i]
			}
		}
	}
	return taken
}

// replies holds the header's replies against those that the body returns, by their codes and lengths.
func (s script) replies() []string {
	var found []string
	listed, given := map[string]bool{}, map[string]bool{}
	for _, reply := range s.listed() {
		listed[shape(reply)] = true
	}
	for _, match := range returned.FindAllStringSubmatch(s.body, -1) {
		if match[1] == "" {
			found = append(found, "a return gives no code")
			continue
		}
		given[shape(match[1])] = true
		found = append(found, s.usage(match[1])...)
	}
	if !maps.Equal(listed, given) {
		found = append(found, fmt.Sprintf("replies: the header lists %v, the body gives %v",
			slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(given))))
	}
	return found
}

// listed returns the replies of the header, each on one line.
func (s script) listed() []string {
	var replies []string
	for _, match := range headerReply.FindAllStringSubmatch(s.header, -1) {
		replies = append(replies, strings.Join(strings.Fields(strings.ReplaceAll(match[1], "\n--", " ")), " "))
	}
	return replies
}

// shape returns the code of a reply and how many values it has: limit/7.
func shape(reply string) string {
	values := split(reply[1 : len(reply)-1])
	return fmt.Sprintf("%s/%d", code(reply), len(values)-1)
}

func (s script) functions() []string {
	var found []string
	for _, match := range forbidden.FindAllString(s.body+s.shared, -1) {
		found = append(found, match+" is not to be used")
	}
	return found
}

// calls checks each command that the body calls: it is known, and its key is one of KEYS.
func (s script) calls() []string {
	var found []string
	keys := slices.Collect(maps.Values(s.taken("KEYS")))
	times := 0
	for _, match := range called.FindAllStringSubmatch(s.body+s.shared, -1) {
		command, key := strings.Trim(match[1], "'"), match[2]
		switch {
		case match[1] != "'"+command+"'":
			found = append(found, "a command that is no literal: "+match[0])
		case command == "TIME":
			times++
		case !readCommands[command] && !writeCommands[command]:
			found = append(found, command+" is a command that this test does not know")
		case !slices.Contains(keys, key):
			found = append(found, command+" on what is no key: "+match[0])
		}
	}
	if times > 1 {
		found = append(found, fmt.Sprintf("TIME is asked %d times", times))
	}
	return found
}

// writes holds what the header says is written against the commands of the body that write.
func (s script) writes() []string {
	_, said, exists := strings.Cut(s.header, "\n-- Writes: ")
	said = strings.TrimSpace(said)
	announced, done := set(headerWrite.FindAllString(said, -1)...), set(writesIn(s.body+s.shared)...)
	if !exists || !maps.Equal(announced, done) || (said == "nothing") != (len(done) == 0) {
		return []string{fmt.Sprintf("writes: the header says %q, the body does %v", said, slices.Sorted(maps.Keys(done)))}
	}
	return nil
}

// block is a block of Lua that is open: what of it counts for a refusal that comes next.
type block struct {
	before  bool // it was written before the block
	written bool // or before, or in this branch of it
	carried bool // in a branch of it that did not return
	ended   bool // this branch has returned
}

// refusals looks for a refusal that a write has gone before. A branch that returns takes its writes with it; those of
// any other branch count for what follows the block. It takes scripts to be written one statement to a line.
func (s script) refusals() []string {
	var found []string
	open := []block{{}}
	for line := range strings.Lines(s.body) {
		line = strings.TrimSpace(line)
		word, _, _ := strings.Cut(line, " ")
		b := &open[len(open)-1]
		if word == "end" || word == "else" || word == "elseif" {
			b.carried = b.carried || b.written && !b.ended
			b.written, b.ended = b.before, false
		}
		if word == "end" && len(open) > 1 {
			carried := b.carried
			open = open[:len(open)-1]
			b = &open[len(open)-1]
			b.written = b.written || carried
		}
		b.written = b.written || len(writesIn(line)) > 0
		opens := opening.MatchString(line) && word != "elseif" && !strings.HasSuffix(line, "end")
		if answer := returned.FindStringSubmatch(line); answer != nil {
			b.ended = word == "return"
			if code := code(answer[1]); code != "ok" && b.written && !refusedAfterAWrite[code] {
				found = append(found, code+" is refused after a write")
			}
		}
		if opens {
			open = append(open, block{before: b.written, written: b.written})
		}
	}
	return found
}

func writesIn(text string) []string {
	var commands []string
	for _, match := range called.FindAllStringSubmatch(emptyWrite.ReplaceAllString(text, ""), -1) {
		if command := strings.Trim(match[1], "'"); writeCommands[command] {
			commands = append(commands, command)
		}
	}
	return commands
}

// code returns the code of a reply such as {'limit', left}.
func code(reply string) string {
	code, _, _ := strings.Cut(strings.TrimPrefix(reply, "{'"), "'")
	return code
}

func set(words ...string) map[string]bool {
	s := map[string]bool{}
	for _, word := range words {
		s[word] = true
	}
	return s
}

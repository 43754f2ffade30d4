package lua

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// usageReplies are the codes of the replies that contain a session's usage.
var usageReplies = set("limit", "below_usage")

var (
	locals       = regexp.MustCompile(`(?m)^ *local ([\w, ]+) = (.*)$`)
	unpackedHash = regexp.MustCompile(`local ([\w, ]+) =\s+unpack\(redis\.call\(\s*'HMGET', (\w+),([^)]*)\)\)`)
	keptHash     = regexp.MustCompile(`(?m)^ *(?:local )?(\w+) = redis\.call\('HMGET', (\w+),([^)]*)\)`)
)

// fields holds the locals that take the fields of a hash against the fields' names: a local is called as its field, with a
// word before it where two hashes have fields of one name. A field that is no literal may be called anything.
func (s script) fields() []string {
	var found []string
	for _, match := range unpackedHash.FindAllStringSubmatch(s.body, -1) {
		names, hash, fields := split(match[1]), match[2], split(match[3])
		if len(names) != len(fields) {
			found = append(found, fmt.Sprintf("fields: %d locals take %d fields", len(names), len(fields)))
			continue
		}
		for i, name := range names {
			found = append(found, misnamed(hash, name, fields[i])...)
		}
	}
	arrays := keptHash.FindAllStringSubmatch(s.body, -1)
	hashes, longest := map[string]string{}, map[string][]string{}
	for _, match := range arrays {
		name, hash, fields := match[1], match[2], split(match[3])
		if before, twice := hashes[name]; twice && (before != hash || !sameFields(longest[name], fields)) {
			found = append(found, "fields: an array takes different fields at one position: "+name)
		}
		hashes[name] = hash
		if len(fields) > len(longest[name]) {
			longest[name] = fields
		}
	}
	for name, fields := range longest {
		found = append(found, s.positions(hashes[name], name, fields)...)
	}
	if read := len(unpackedHash.FindAllString(s.body, -1)) + len(arrays); read != strings.Count(s.body, "'HMGET'") {
		found = append(found, "fields: an HMGET is taken neither into locals nor into one array")
	}
	return found
}

// sameFields reports whether two reads of a hash into one array differ only in fields behind the others that are no literals.
func sameFields(a, b []string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	literal := func(field string) bool { return strings.HasPrefix(field, "'") }
	return slices.Equal(a[:len(b)], b) && !slices.ContainsFunc(a[len(b):], literal)
}

// positions holds the locals that take values of an array of fields by their positions against the fields' names. Nothing
// else knows a position.
func (s script) positions(hash, array string, fields []string) []string {
	var found []string
	at := regexp.MustCompile(`\b` + array + `\[(\d+)\]`)
	taken := 0
	for _, match := range locals.FindAllStringSubmatch(s.body, -1) {
		names, values := split(match[1]), split(match[2])
		for i := range min(len(names), len(values)) {
			if position := at.FindStringSubmatch(values[i]); position != nil && values[i] == position[0] {
				taken++
				found = append(found, misnamed(hash, names[i], fields[number(position[1])-1])...)
			}
		}
	}
	if taken != len(at.FindAllString(s.body, -1)) {
		found = append(found, "fields: a field is taken by its position, not by a name: "+array)
	}
	return found
}

// misnamed holds a local against the name that scripts have for the field: that of fields.txt, or its own.
func misnamed(hash, local, field string) []string {
	name := strings.Trim(field, "'")
	literal := field != name
	for long, short := range storedNames()[hash] {
		if short == name {
			name = long
		}
	}
	if !literal || local == name || strings.HasSuffix(local, "_"+name) {
		return nil
	}
	return []string{fmt.Sprintf("fields: %s stands for the field %s", local, name)}
}

// usage holds the locals of a reply with a session's usage against the names in the header: Go reads them all by
// one list.
func (s script) usage(reply string) []string {
	var found []string
	for _, known := range s.listed() {
		if !usageReplies[code(reply)] || shape(known) != shape(reply) {
			continue
		}
		listed, given := split(known[1:len(known)-1]), split(reply[1:len(reply)-1])
		for i := 2; i < len(listed); i++ { // after the code and the limit
			found = append(found, misnamed("", given[i], "'"+listed[i]+"'")...)
		}
	}
	return found
}

// fielded is sound reading its purse by both ways in which locals take fields, and by a block.
func fielded(t *testing.T) string {
	t.Helper()
	return spoil(t, sound, "local left = redis.call('HGET', purse, 'left')\n", `local left, purse_spent = unpack(redis.call('HMGET', purse, 'left', 'spent'))
local state = redis.call('HMGET', purse, 'owner', 'colour')
local owner, colour = state[1], state[2]
`)
}

func TestEachFaultOfAFieldIsFound(t *testing.T) {
	t.Parallel()
	const state, taken = "local state = redis.call('HMGET', purse, 'owner', 'colour')\n", "local owner, colour = state[1], state[2]\n"
	// again has a second read fill the array, which must have the same in each position.
	again := func(from string) string { return state + "state = redis.call('HMGET', " + from + ")\n" + taken }
	wantFaults(t, "sound", fielded(t))
	wantFaults(t, "a field that is no literal may be called anything", spoil(t, fielded(t), "'left', 'spent'", "'left', note"))
	wantFaults(t, "read again, with a field that is no literal", spoil(t, fielded(t), state+taken, again("purse, 'owner', 'colour', note")))
	for _, test := range []struct{ name, old, new, want string }{
		{"local named otherwise", "local left, purse_spent", "local left, rest", "rest stands for the field spent"},
		{"locals in another order", "local left, purse_spent", "local spent, left", "spent stands for the field left"},
		{"a field more than locals", "'left', 'spent'", "'left', 'spent', 'owner'", "2 locals take 3 fields"},
		{"position named otherwise", "= state[1], state[2]", "= state[2], state[1]", "owner stands for the field colour"},
		{"position without a name", "if not left then", "if not state[2] then", "by its position, not by a name: state"},
		{"position in a sum", "= state[1], state[2]", "= state[1], state[2] + 1", "by its position, not by a name: state"},
		{"fields taken in another way", "local state = redis.call(", "local state, more = redis.call(", "an HMGET is taken neither"},
		{"read again, a literal field more", state + taken, again("purse, 'owner', 'colour', 'spent'"), "different fields"},
		{"read again, a literal field less", state + taken, again("purse, 'owner'"), "different fields"},
		{"read again in another order", state + taken, again("purse, 'colour', 'owner'"), "different fields"},
		{"read again of another hash", state + taken, again("ledger, 'owner', 'colour'"), "different fields"},
	} {
		wantFault(t, test.name, faults(spoil(t, fielded(t), test.old, test.new)), test.want)
	}
}

func TestAReplyOfUsageIsNamedAsTheHeaderNamesIt(t *testing.T) {
	t.Parallel()
	usage := spoil(t, sound, "{'limit', left}", "{'limit', amount, left}")
	wantFaults(t, "named as in the header", usage)
	another := spoil(t, usage, "return {'limit', amount, left}", "return {'limit', amount, note}")
	wantFault(t, "another local", faults(another), "note stands for the field left")
}

package lua

import (
	"path"
	"slices"
	"strings"
	"testing"
)

func TestEveryScriptKeepsItsContract(t *testing.T) {
	t.Parallel()
	for _, name := range of(t, "script") {
		for _, fault := range faults(read(name)) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

func TestEveryIncludedFileSaysWhatItIsForAndIsIncluded(t *testing.T) {
	t.Parallel()
	included := []string{"run_each"} // by merge
	for _, script := range of(t, "script") {
		for _, line := range includes.FindAllStringSubmatch(expand(read(script)), -1) {
			included = append(included, line[1])
		}
	}
	for _, file := range of(t, "include") {
		name := path.Base(file)
		comment, _, found := strings.Cut(read(file), "\nlocal ")
		if !found || !sentences.MatchString(comment) {
			t.Errorf("%s opens with no purpose", file)
		}
		if !slices.Contains(included, name) {
			t.Errorf("nothing includes %s", file)
		}
	}
}

// sound is a script without a fault, for the tests below to spoil.
const sound = `-- Spends something.
--
-- KEYS[1] = purse   hash p:{cell}:<purse>
-- KEYS[2] = log     zset l:{cell}:<purse>
--
-- ARGV[1] = amount  micro-USD
-- ARGV[2] = note    '' for none
--
-- Reply:  {'ok', left}     micro-USD
--         {'empty'}
--         {'limit', left}  nothing was
--                          spent
-- Writes: HSET purse, then ZADD log
local purse, log = KEYS[1], KEYS[2]
local amount, note = tonumber(ARGV[1]), ARGV[2]

local time = redis.call('TIME')
local left = redis.call('HGET', purse, 'left')
if not left then
  return {'empty'}
end
for word in string.gmatch(note, '%S+') do
  if word == 'no' then
    return {'empty'}
  end
end
if note == 'all' then
  redis.call('HSET', purse, 'left', 0)
  return {'ok', string.format('%.0f', 0)}
elseif tonumber(left) < amount then
  return {'limit', left}
end

left = string.format('%.0f', left - amount)
redis.call('HSET', purse, 'left', left)
if note ~= '' then
  redis.call('ZADD', log, time[1], note)
end
return {'ok', left} -- what is left
`

func TestASoundScriptHasNoFault(t *testing.T) {
	t.Parallel()
	wantFaults(t, "sound", sound)
	wantFaults(t, "with unpack", spoil(t, sound, "local amount, note = tonumber(ARGV[1]), ARGV[2]", "local amount, note = unpack(ARGV)"))
}

// wantFaults checks that a script has as many faults as these, which say so.
func wantFaults(t *testing.T, name, source string, want ...string) {
	t.Helper()
	found := faults(source)
	if len(found) != len(want) {
		t.Errorf("%s: found %q, want %q", name, found, want)
	}
	wantFault(t, name, found, want...)
}

// wantFault checks that each of these is a part of a fault.
func wantFault(t *testing.T, name string, found []string, want ...string) {
	t.Helper()
	for _, part := range want {
		if !slices.ContainsFunc(found, func(fault string) bool { return strings.Contains(fault, part) }) {
			t.Errorf("%s: found %q, want one with %q", name, found, part)
		}
	}
}

func TestEachFaultOfAScriptIsFound(t *testing.T) {
	t.Parallel()
	const keys, arguments = "local purse, log = KEYS[1], KEYS[2]", "local amount, note = tonumber(ARGV[1]), ARGV[2]"
	for _, test := range []struct{ name, old, new, want string }{
		{"no purpose", "-- Spends something.\n", "", "opens with no purpose"},
		{"purpose without a full stop", "something.", "something", "opens with no purpose"},
		{"key named, never used", keys, "local purse, log = KEYS[1], purse", "KEYS"},
		{"key used, never named", "-- KEYS[2] = log     zset l:{cell}:<purse>\n", "", "KEYS"},
		{"keys numbered with a gap", "KEYS[2]", "KEYS[3]", "KEYS"},
		{"argument named, never used", "tonumber(ARGV[1]), ARGV[2]", "tonumber(ARGV[1]), ''", "ARGV"},
		{"argument used, never named", "tonumber(ARGV[1]), ARGV[2]", "tonumber(ARGV[1]), ARGV[2] .. ARGV[3]", "ARGV"},
		{"too few unpacked", arguments, "local amount = unpack(ARGV)", "ARGV"},
		{"too many unpacked", arguments, "local amount, note, more = unpack(ARGV)", "ARGV"},
		{"locals in the wrong order", arguments, "local note, amount = tonumber(ARGV[1]), ARGV[2]", "ARGV[1] is amount in the header, note in the body"},
		{"unpacked in the wrong order", arguments, "local note, amount = unpack(ARGV)", "ARGV[1] is amount in the header, note in the body"},
		{"keys swapped", keys, "local log, purse = KEYS[1], KEYS[2]", "KEYS[1] is purse in the header, log in the body"},
		{"reply given, not listed", "--         {'empty'}\n", "", "replies"},
		{"reply listed, never given", "--         {'empty'}\n", "--         {'empty'}\n--         {'closed'}\n", "replies"},
		{"reply longer than listed", "return {'empty'}\nend\nfor", "return {'empty', left}\nend\nfor", "replies"},
		{"reply without a code", "return {'empty'}\nend\nfor", "return nil\nend\nfor", "a return gives no code"},
		{"reply with a computed code", "return {'limit', left}", "return {note, left}", "a return gives no code"},
		{"error reply", "return {'limit', left}", "return redis.error_reply('LIMIT')", "redis.error_reply"},
		{"errors caught", "redis.call('HGET'", "redis.pcall('HGET'", "redis.pcall"},
		{"two times", "left = string.format", "time = redis.call('TIME')\nleft = string.format", "TIME is asked 2 times"},
		{"key built from an argument", "'HGET', purse,", "'HGET', 'p:' .. note,", "HGET on what is no key"},
		{"key taken past its name", "'HGET', purse,", "'HGET', KEYS[1],", "HGET on what is no key"},
		{"command that is computed", "redis.call('HGET', ", "redis.call(note, ", "a command that is no literal"},
		{"unknown command", "'HGET'", "'GETDEL'", "GETDEL"},
		{"write not announced", "HSET purse, then ZADD log", "HSET purse", "writes"},
		{"write announced, not done", "HSET purse, then ZADD log", "HSET purse, then ZADD log, then DEL log", "writes"},
		{"writes: nothing, and yet", "HSET purse, then ZADD log", "nothing", "writes"},
		{"no word on writes", "-- Writes: HSET purse, then ZADD log\n", "", "writes"},
		{"refusal after a write", "local left =",
			"redis.call('HSET', purse, 'n', 1)\nlocal left =", "is refused after a write"},
		{"refusal after a write in a branch", "local left =",
			"if note then\n  redis.call('HSET', purse, 'n', 1)\nend\nlocal left =", "is refused after a write"},
		{"refusal after a write in an else", "local left =",
			"if note then\n  note = ''\nelse\n  redis.call('HSET', purse, 'n', 1)\nend\nlocal left =", "is refused after a write"},
		{"refusal after a write in its own branch", "    return {'empty'}",
			"    redis.call('HSET', purse, 'n', 1)\n    return {'empty'}", "is refused after a write"},
		{"refusal after a write on one line", "local left =",
			"if note then redis.call('HSET', purse, 'n', 1) end\nlocal left =", "is refused after a write"},
	} {
		wantFault(t, test.name, faults(spoil(t, sound, test.old, test.new)), test.want)
	}
}

func TestManyArgumentsNeedAReason(t *testing.T) {
	t.Parallel()
	many := spoil(t, sound, "-- ARGV[2] = note    '' for none\n", `-- ARGV[2] = note    '' for none
-- ARGV[3] = c
-- ARGV[4] = d
-- ARGV[5] = e
-- ARGV[6] = f
-- ARGV[7] = g
`)
	many = spoil(t, many, "local amount, note = tonumber(ARGV[1]), ARGV[2]", "local amount, note, c, d, e, f, g = unpack(ARGV)")
	wantFaults(t, "without a reason", many, "7 arguments")
	wantFaults(t, "with a reason", spoil(t, many, "--\n-- Reply:", "--\n-- Arguments: each is stored.\n--\n-- Reply:"))
}

func TestAnAPIKeyIsCheckedByItsBlockOnly(t *testing.T) {
	t.Parallel()
	wantFaults(t, "a check of its own", spoil(t, sound, "{'empty'}", "{'invalid_api_key'}"), "in its own way")
}

// The write that changes nothing, by which a script goes on in a full Redis, is none.
func TestAnEmptyWriteIsNoWrite(t *testing.T) {
	t.Parallel()
	full := spoil(t, sound, "local left =", "redis.call('HDEL', purse, '')\nlocal left =")
	wantFaults(t, "an empty write", full)
	wantFault(t, "an HDEL of a field", faults(spoil(t, full, "'HDEL', purse, ''", "'HDEL', purse, 'left'")), "writes")
	wantFault(t, "one on what is no key", faults(spoil(t, full, "'HDEL', purse, ''", "'HDEL', note, ''")), "HDEL on what is no key")
}

// The one script that answers a refusal after it has written is known by name; any other is a fault.
func TestOnlyAReuseIsRefusedAfterAWrite(t *testing.T) {
	t.Parallel()
	reuse := spoil(t, sound, "if not left then\n  return {'empty'}",
		"if not left then\n  redis.call('HSET', purse, 'n', 1)\n  return {'reused'}")
	reuse = spoil(t, reuse, "--         {'empty'}\n", "--         {'empty'}\n--         {'reused'}\n")
	wantFaults(t, "a reuse", reuse)
	later := spoil(t, reuse, "'n', 1)\n  return {'reused'}",
		"'n', 1)\n  if note then\n    return {'reused'}\n  end\n  return {'empty'}")
	wantFault(t, "empty after a write", faults(later), "empty is refused after a write")
}

func spoil(t *testing.T, script, old, new string) string {
	t.Helper()
	if !strings.Contains(script, old) {
		t.Fatalf("the script has no %q to spoil", old)
	}
	return strings.ReplaceAll(script, old, new)
}

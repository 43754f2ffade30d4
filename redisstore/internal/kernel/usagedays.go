package kernel

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"remit/internal/redisclient"
	"remit/money"
)

// UsedAmounts are actions and their value. Both may be below 0: what a day gave back of what was used on an earlier day.
type UsedAmounts struct {
	Actions int64
	Value   money.MicroUSD
}

// Plus returns the sums.
func (a UsedAmounts) Plus(b UsedAmounts) UsedAmounts {
	return UsedAmounts{a.Actions + b.Actions, a.Value + b.Value}
}

// Minus returns the differences.
func (a UsedAmounts) Minus(b UsedAmounts) UsedAmounts {
	return UsedAmounts{a.Actions - b.Actions, a.Value - b.Value}
}

// DayUsage is what was used on one day, by action type as it is stored; untyped is the rest of all.
type DayUsage struct {
	All     UsedAmounts
	ByIndex map[string]UsedAmounts
}

// allTypes is the index of all action types together in a day; see include/fold_usage.lua.
const allTypes = "t"

// ReadDay reads the text of a day.
func ReadDay(text string) (DayUsage, error) {
	words := strings.Fields(text)
	d := DayUsage{ByIndex: map[string]UsedAmounts{}}
	if len(words)%3 != 0 {
		return d, fmt.Errorf("%w: %q is no day's usage", redisclient.ErrReply, text)
	}
	for i := 0; i < len(words); i += 3 {
		numbers, err := NumbersOf(words[i+1:i+3], 2)
		if err != nil {
			return d, err
		}
		used := UsedAmounts{numbers[0], money.MicroUSD(numbers[1])}
		if words[i] == allTypes {
			d.All = used
		} else {
			d.ByIndex[words[i]] = used
		}
	}
	return d, nil
}

// Untyped is what was used without an action type.
func (d DayUsage) Untyped() UsedAmounts {
	rest := d.All
	for _, used := range d.ByIndex {
		rest = rest.Minus(used)
	}
	return rest
}

// UsageRecord is the days of an agent, or of a session that is kept.
type UsageRecord struct {
	Names map[string]string // action types by index
	Days  map[int]DayUsage  // by days since 1970
	First int               // the first day that is kept, of an agent
}

// ReadUsage reads the fields of a hash: those of an agent's days, or of a session.
func ReadUsage(fields []string, agent bool) (UsageRecord, error) {
	u := UsageRecord{Names: map[string]string{"0": OtherTypes}, Days: map[int]DayUsage{}, First: math.MaxInt}
	for i := 0; i+1 < len(fields); i += 2 {
		kind, name, _ := strings.Cut(fields[i], ":")
		switch {
		case fields[i] == "o" && agent:
			first, err := strconv.Atoi(fields[i+1])
			if err != nil {
				return u, fmt.Errorf("%w: %q is no day", redisclient.ErrReply, fields[i+1])
			}
			u.First = first
		case kind == "n" && agent && name != "":
			u.Names[fields[i+1]] = TypeNamed(name)
		case kind == "t" && !agent && name != "":
			index, _, _ := strings.Cut(fields[i+1], " ")
			u.Names[index] = TypeNamed(name)
		case kind == "d" && agent && name != "", kind == "u" && !agent && name != "":
			day, err := strconv.Atoi(name)
			if err != nil {
				return u, fmt.Errorf("%w: %q is no day", redisclient.ErrReply, name)
			}
			if u.Days[day], err = ReadDay(fields[i+1]); err != nil {
				return u, err
			}
		}
	}
	return u, nil
}

// Within leaves out the days before the first and after the last.
func (u UsageRecord) Within(first, last int) UsageRecord {
	maps.DeleteFunc(u.Days, func(day int, _ DayUsage) bool { return day < first || day > last })
	return u
}

// NameOf returns the action type with this index.
func (u UsageRecord) NameOf(index string) string {
	if name := u.Names[index]; name != "" {
		return name
	}
	return OtherTypes
}

// OtherTypes is what a session spends on action types beyond the first 64, and an agent in a day on those beyond its first 256.
const OtherTypes = "other"

// TypeNamed returns the action type that is stored by this name.
func TypeNamed(name string) string {
	if name == "" {
		return OtherTypes
	}
	return strings.ToValidUTF8(ManyLines.Replace(name), "\uFFFD") // a proxy may send any bytes
}

// ManyLines is the inverse of budgets/include/one_line.lua.
var ManyLines = strings.NewReplacer(`\\`, `\`, `\n`, "\n")

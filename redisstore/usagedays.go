package redisstore

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"remit/money"
)

// usedAmounts are actions and their value. Both may be below 0: what a day gave back of what was used on an earlier day.
type usedAmounts struct {
	actions int64
	value   money.MicroUSD
}

func (a usedAmounts) plus(b usedAmounts) usedAmounts {
	return usedAmounts{a.actions + b.actions, a.value + b.value}
}
func (a usedAmounts) minus(b usedAmounts) usedAmounts {
	return usedAmounts{a.actions - b.actions, a.value - b.value}
}

// dayUsage is what was used on one day, by action type as it is stored; untyped is the rest of all.
type dayUsage struct {
	all     usedAmounts
	byIndex map[string]usedAmounts
}

// allTypes is the index of all action types together in a day; see include/fold_usage.lua.
const allTypes = "t"

// readDay reads the text of a day.
func readDay(text string) (dayUsage, error) {
	words := strings.Fields(text)
	d := dayUsage{byIndex: map[string]usedAmounts{}}
	if len(words)%3 != 0 {
		return d, fmt.Errorf("%w: %q is no day's usage", errReply, text)
	}
	for i := 0; i < len(words); i += 3 {
		numbers, err := numbersOf(words[i+1:i+3], 2)
		if err != nil {
			return d, err
		}
		used := usedAmounts{numbers[0], money.MicroUSD(numbers[1])}
		if words[i] == allTypes {
			d.all = used
		} else {
			d.byIndex[words[i]] = used
		}
	}
	return d, nil
}

// untyped is what was used without an action type.
func (d dayUsage) untyped() usedAmounts {
	rest := d.all
	for _, used := range d.byIndex {
		rest = rest.minus(used)
	}
	return rest
}

// usageRecord is the days of an agent, or of a session that is kept.
type usageRecord struct {
	names map[string]string // action types by index
	days  map[int]dayUsage  // by days since 1970
	first int               // the first day that is kept, of an agent
}

// readUsage reads the fields of a hash: those of an agent's days, or of a session.
func readUsage(fields []string, agent bool) (usageRecord, error) {
	u := usageRecord{names: map[string]string{"0": OtherTypes}, days: map[int]dayUsage{}, first: math.MaxInt}
	for i := 0; i+1 < len(fields); i += 2 {
		kind, name, _ := strings.Cut(fields[i], ":")
		switch {
		case fields[i] == "o" && agent:
			first, err := strconv.Atoi(fields[i+1])
			if err != nil {
				return u, fmt.Errorf("%w: %q is no day", errReply, fields[i+1])
			}
			u.first = first
		case kind == "n" && agent && name != "":
			u.names[fields[i+1]] = typeNamed(name)
		case kind == "t" && !agent && name != "":
			index, _, _ := strings.Cut(fields[i+1], " ")
			u.names[index] = typeNamed(name)
		case kind == "d" && agent && name != "", kind == "u" && !agent && name != "":
			day, err := strconv.Atoi(name)
			if err != nil {
				return u, fmt.Errorf("%w: %q is no day", errReply, name)
			}
			if u.days[day], err = readDay(fields[i+1]); err != nil {
				return u, err
			}
		}
	}
	return u, nil
}

// within leaves out the days before the first and after the last.
func (u usageRecord) within(first, last int) usageRecord {
	maps.DeleteFunc(u.days, func(day int, _ dayUsage) bool { return day < first || day > last })
	return u
}

// numbersOf reads so many whole numbers.
func numbersOf(words []string, count int) ([]int64, error) {
	if len(words) != count {
		return nil, fmt.Errorf("%w: %d numbers, not %d", errReply, len(words), count)
	}
	numbers := make([]int64, count)
	for i, word := range words {
		var err error
		if numbers[i], err = strconv.ParseInt(word, 10, 64); err != nil {
			return nil, fmt.Errorf("%w: %q is no number", errReply, word)
		}
	}
	return numbers, nil
}

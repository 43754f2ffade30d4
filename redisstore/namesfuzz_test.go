package redisstore

import (
	"math/big"
	"regexp"
	"strings"
	"testing"

	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
)

var (
	eventIDForm     = regexp.MustCompile(`^([0-9]+)-([0-9]+)$`)
	greatestEventID = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1))
)

// eventNumber returns an event id as one number, or nil if Redis would reject it.
func eventNumber(id string) *big.Int {
	parts := eventIDForm.FindStringSubmatch(id)
	if parts == nil {
		return nil
	}
	high, _ := new(big.Int).SetString(parts[1], 10)
	low, _ := new(big.Int).SetString(parts[2], 10)
	if high.BitLen() > 64 || low.BitLen() > 64 {
		return nil
	}
	return high.Lsh(high, 64).Or(high, low)
}

// FuzzEventID compares the arithmetic of event ids, where pages of an audit trail start, with math/big.
func FuzzEventID(f *testing.F) {
	for _, seed := range [][2]string{
		{"1-0", "0-1"}, {"1-1", "1-2"}, {"10-0", "9-99"}, {"1-10", "1-9"}, {"1-2", "1-10"}, {"1700000000123-1", "1700000000123-0"}, {"", ""},
		{"0-0", "007-1"}, {"5", "-"}, {"5-1-1", "5-*"}, {"5 -1", "a-1"}, {"5_0-1", "0x5-1"}, {"(5-1", "5-"}, {"+5-1", "5-+1"}, {"1", "1-"}, {"-1", "1--1"}, {"01-00", "1-0"}, {"+1-0", "1-+0"}, {"1-0-0", "$"},
		{"18446744073709551615-18446744073709551615", "18446744073709551615-18446744073709551614"}, {"18446744073709551616-0", "0-18446744073709551616"},
		{strings.Repeat("0", 40) + "1-0", "1-0"}, {"1-0\n", " 1-0"}, {"(1-0", "+"}, {"\u0661-0", "1_0-0"}, {"1-0", strings.Repeat("0", 17) + "1-" + strings.Repeat("0", 22)},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, id, after string) {
		a, b := eventNumber(id), eventNumber(after)
		if want := a != nil && a.Cmp(greatestEventID) < 0 && len(id) <= kernel.MaxEventID; records.ValidEventID(id) != want {
			t.Errorf("%q can be the id of an event: %t, want %t", id, !want, want)
		}
		if records.ValidEventID(id) && records.ValidEventID(after) && kernel.IsLater(id, after) != (a.Cmp(b) > 0) {
			t.Errorf("%q is later than %q: %t", id, after, kernel.IsLater(id, after))
		}
		if records.ValidEventID(id) && (kernel.IsLater(id, id) || kernel.IsLater("", id)) {
			t.Errorf("%q is later than itself, or before the beginning", id)
		}
	})
}

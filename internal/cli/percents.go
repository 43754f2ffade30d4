package cli

import (
	"errors"
	"strconv"
	"strings"
)

// percents is a flag: whole percents from 1 to 100, such as 50,80,100, or none.
type percents []int

var errNotPercents = errors.New("must be percents from 1 to 100, such as 50,80,100, or none")

// UnmarshalText is called by the flag parser.
func (p *percents) UnmarshalText(text []byte) error {
	*p = percents{}
	if string(text) == "none" {
		return nil
	}
	for word := range strings.SplitSeq(string(text), ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > 100 {
			return errNotPercents
		}
		*p = append(*p, n)
	}
	return nil
}

// shownPercents returns the thresholds of a session; nil is the default, and empty.
func shownPercents(given []int) string {
	if given == nil {
		return ""
	}
	words := make([]string, len(given))
	for i, n := range given {
		words[i] = strconv.Itoa(n) + "%"
	}
	return dashed(strings.Join(words, ", "))
}

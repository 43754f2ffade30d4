package wire

import (
	"encoding/json"
	"sort"
	"strconv"

	"remit/money"
)

// Fit lowers the limit of the output, of each answer, to what is left for the call beside its input. It goes no lower than to least, nor
// to a budget of thinking and that, unless the request's own limit is lower. It returns the limit, and whether the call fits; if not, the
// call is as it was.
func (c *Call) Fit(left money.MicroUSD, least int64) (output int64, ok bool) {
	most := c.MostOutput / c.Answers
	least = min(max(least, 0)+c.Budget, most)
	fits := func(each int64) bool {
		cost, err := c.worst(each * c.Answers)
		return err == nil && cost <= left
	}
	switch {
	case fits(most):
		return most, true
	case least == most || !fits(least):
		return 0, false
	}
	output = least + int64(sort.Search(int(most-least), func(more int) bool { return !fits(least + 1 + int64(more)) }))
	return output, c.limit(output) == nil
}

// limit sends each limit of the output that the request has, or the one that it should have, no higher than this.
func (c *Call) limit(output int64) error {
	text := rawMessage(strconv.FormatInt(output, 10))
	for _, name := range c.Format.maxima() {
		if given := c.members[name]; given == nil || string(given) == "null" {
			continue
		}
		if n, is := wholeNumber(json.Number(c.members[name])); !is || n > output {
			c.members[name] = text
		}
	}
	if !c.IsLimited {
		c.members[c.LimitName] = text
	}
	c.MostOutput, c.IsLimited = output*c.Answers, true
	return c.write()
}

// moveLimit sends the limit of the output under this name only.
func (c *Call) moveLimit(name string, output int64) error {
	for _, other := range c.Format.maxima() {
		delete(c.members, other)
	}
	c.LimitName = name
	return c.Set(name, output)
}

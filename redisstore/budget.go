package redisstore

import (
	"fmt"
	"strings"

	"remit/money"
)

// mostCounted is where what was committed stops being counted: scripts count no further.
const mostCounted money.MicroUSD = 1<<53 - 1

// budget is a session's field gb; see include/budget.lua.
type budget struct {
	givenBack    money.MicroUSD  // by rollbacks of what was committed
	maxCommitted *money.MicroUSD // nil for none
	maxValue     money.MicroUSD  // with maxCommitted
}

// budget reads a field gb, nil for a session that has neither rollbacks of commits nor max_committed.
func budgetAt(r *reply, i int) budget {
	text := r.Optional(i)
	if text == "" {
		return budget{}
	}
	parts := strings.Split(text, " ")
	b := budget{givenBack: money.MicroUSD(r.Parse(parts[0]))}
	switch len(parts) {
	case 1:
	case 3:
		most := money.MicroUSD(r.Parse(parts[1]))
		b.maxCommitted, b.maxValue = &most, money.MicroUSD(r.Parse(parts[2]))
	default:
		r.Err = fmt.Errorf("%w: %q is no budget", errReply, text)
	}
	return b
}

// split makes MaxValue and Withheld of the usage's MaxValue, which is the lower of max_value and what max_committed leaves.
func (u *Usage) split(b budget) {
	if b.maxCommitted != nil {
		u.MaxValue, u.Withheld = b.maxValue, b.maxValue-u.MaxValue
	}
}

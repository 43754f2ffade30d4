package redisstore

import (
	"fmt"
	"strings"

	"remit/money"
)

// mostCounted is the largest committed value that scripts count, because Lua numbers are exact up to it.
const mostCounted money.MicroUSD = 1<<53 - 1

// noMaxCommitted stands for no max_committed in a budget that has one; see budgets/include/restrict.lua.
const noMaxCommitted = mostCounted

// budget is a session's field gb; see budgets/include/budget.lua.
type budget struct {
	givenBack    money.MicroUSD  // by rollbacks of committed transactions
	maxCommitted *money.MicroUSD // nil for none
	maxValue     money.MicroUSD  // with maxCommitted
	delegated    *Delegated      // only in replies that show usage (budgets/block/show_delegated.lua)
}

// budgetAt reads a field gb, which is nil for a session that has neither rollbacks of commits nor max_committed.
func budgetAt(r *reply, i int) budget { return parseBudget(r, r.Optional(i)) }

// parseBudget reads a field gb, "" for none.
func parseBudget(r *reply, text string) budget {
	if text == "" {
		return budget{}
	}
	parts := strings.Split(text, " ")
	b := budget{givenBack: money.MicroUSD(r.Parse(parts[0]))}
	if len(parts) == 5 {
		b.delegated = &Delegated{r.Parse(parts[3]), money.MicroUSD(r.Parse(parts[4]))}
		parts = parts[:3]
	}
	switch len(parts) {
	case 1:
	case 3:
		most := money.MicroUSD(r.Parse(parts[1]))
		if b.maxValue = money.MicroUSD(r.Parse(parts[2])); most != noMaxCommitted {
			b.maxCommitted = &most
		}
	default:
		r.Err = fmt.Errorf("%w: %q is no budget", errReply, text)
	}
	return b
}

// split sets MaxValue and Withheld. Until then MaxValue is the lower of max_value and what max_committed leaves.
func (u *Usage) split(b budget) {
	if b.delegated != nil {
		u.Delegated = b.delegated
	}
	if b.maxCommitted != nil {
		u.MaxValue, u.Withheld = b.maxValue, b.maxValue-u.MaxValue
	}
}

package metered

import (
	"errors"
	"fmt"
	"strconv"

	"remit/client"
	"remit/money"
)

// nameLimit notes the maximum of output that the request has, or should have.
func (q *call) nameLimit(request members) {
	names := q.format.maxima()
	q.limitName = names[0]
	for _, name := range names {
		if request[name] != nil {
			q.limitName, q.isLimited = name, true
			return
		}
	}
}

// explained adds to a refusal by a limit what the call needs, and how it needs less.
func (q *call) explained(err error, worst money.MicroUSD) error {
	if !errors.As(err, new(*client.LimitReached)) && !errors.As(err, new(*client.AgentLimitReached)) && !errors.As(err, new(*client.BudgetExhausted)) {
		return err
	}
	how := "set " + q.limitName
	if q.isLimited {
		how = "lower " + q.limitName + ", or send less"
	}
	return fmt.Errorf("%w; the call may cost up to %s USD (%s tokens of output): %s", err, worst, grouped(q.mostOutput), how)
}

// grouped writes a count with a comma between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

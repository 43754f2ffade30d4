package metered

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"remit/client"
	"remit/client/wire"
	"remit/money"
)

// explained adds to a refusal by a limit of value what the call needs, and how it needs less.
func explained(q *wire.Call, err error, worst money.MicroUSD) error {
	if !isOfValue(err) {
		return err
	}
	how := "set " + q.LimitName
	if q.IsLimited {
		how = "lower " + q.LimitName + ", or send less"
	}
	return fmt.Errorf("%w; the call may cost up to %s USD (%s tokens of output): %s", err, worst, grouped(q.MostOutput), how)
}

// isOfValue reports whether a call that costs less can pass. One that a count of actions refuses cannot.
func isOfValue(err error) bool {
	var session *client.LimitReached
	var agent *client.AgentLimitReached
	limit := ""
	switch {
	case errors.As(err, new(*client.BudgetExhausted)):
		return true
	case errors.As(err, &session):
		limit = session.Limit
	case errors.As(err, &agent):
		limit = agent.Limit
	}
	return limit == "max_committed_usd" || strings.HasPrefix(limit, "max_value_usd")
}

// grouped writes a count with a comma between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

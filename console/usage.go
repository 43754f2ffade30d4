package console

import (
	"errors"
	"strconv"
	"strings"

	"remit/money"
)

// usageLine is a line of a report of usage.
type usageLine struct {
	Day         string  `json:"day"`
	AgentID     string  `json:"agent_id"`
	SessionID   *string `json:"session_id"`
	ActionType  *string `json:"action_type"`
	ActionCount int64   `json:"action_count"`
	Value       amount  `json:"value_usd"`
}

// Type is the action type; "" for none.
func (l usageLine) Type() string {
	if l.ActionType == nil {
		return ""
	}
	return *l.ActionType
}

// amount is a value that may be below 0, when more was given back than used, or above what one session may have.
type amount money.MicroUSD

var errAmount = errors.New("not an amount")

// UnmarshalJSON reads an exact decimal. Implements json.Unmarshaler.
func (a *amount) UnmarshalJSON(number []byte) error {
	const decimals = "000000"
	whole, fraction, _ := strings.Cut(string(number), ".")
	if whole == "" || len(fraction) > len(decimals) {
		return errAmount
	}
	value, err := strconv.ParseInt(whole+fraction+decimals[len(fraction):], 10, 64)
	if err != nil {
		return errAmount
	}
	*a = amount(value)
	return nil
}

// usage returns a report of the organization's usage.
func (a api) usage(parameters ...string) ([]usageLine, error) {
	var lines []usageLine
	err := a.get(query("/v1/usage", parameters...), &lines)
	return lines, err
}

// isTooLarge reports whether a report would have more lines than the API gives.
func isTooLarge(err error) bool {
	p := problemOf(err)
	return p.Status == 400 && strings.Contains(p.text(), "more than 10000 lines")
}

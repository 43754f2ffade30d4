package console

import (
	"strconv"
	"strings"

	"remit/money"
)

// readAmount reads an exact amount of dollars. It returns nil for an empty text.
func readAmount(text string) (any, error) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "$")
	if text == "" {
		return nil, nil
	}
	amount, err := money.Parse([]byte(text))
	if err != nil {
		return nil, invalid("an amount is a number of dollars such as 12.50, with at most 6 decimals")
	}
	return amount, nil
}

// readCount reads a whole number. It returns nil for an empty text.
func readCount(text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, invalid("a number of actions, sessions or seconds is a whole number")
	}
	return n, nil
}

// readSome returns the fields of a form that are not empty, as the body of a change.
func (v *visit) readSome(fields map[string]func(string) (any, error)) (map[string]any, error) {
	body := map[string]any{}
	for field, read := range fields {
		value, err := read(v.form(field))
		if err != nil {
			return nil, err
		}
		if value != nil {
			body[field] = value
		}
	}
	return body, nil
}

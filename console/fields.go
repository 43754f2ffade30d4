package console

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"remit/money"
)

// fields are the fields of a form that become the body of a change, each with what reads it.
type fields map[string]func(text string) (any, error)

// read returns the body. A value is nil where a field is empty and its reader says so; nil fields have none.
func (f fields) read(v *visit) (map[string]any, error) {
	if f == nil {
		return nil, nil
	}
	body := map[string]any{}
	var wrong *problem
	for _, field := range slices.Sorted(maps.Keys(f)) {
		value, err := f[field](v.form(field))
		switch {
		case err == nil:
			body[field] = value
		case wrong == nil:
			wrong = problemOf(err).at(field)
		default:
			wrong.Errors = append(wrong.Errors, problemOf(err).at(field).Errors...)
		}
	}
	if wrong != nil {
		return nil, wrong
	}
	return body, nil
}

// given returns the body without values that are nil.
func (f fields) given(v *visit) (map[string]any, error) {
	body, err := f.read(v)
	maps.DeleteFunc(body, func(_ string, value any) bool { return value == nil })
	return body, err
}

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

// readText returns nil for an empty text.
func readText(text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	return text, nil
}

// asTyped returns a text that may be empty.
func asTyped(text string) (any, error) { return text, nil }

// readWords splits a text at white space and commas.
func readWords(text string) (any, error) {
	return append([]string{}, strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,\n\r\t", r) })...), nil
}

// readSomeWords returns nil for a text without words.
func readSomeWords(text string) (any, error) {
	if strings.Trim(text, " ,\n\r\t") == "" {
		return nil, nil
	}
	return readWords(text)
}

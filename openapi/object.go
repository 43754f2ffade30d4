package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// object is a JSON object that keeps the order of its members: the file's order is the page's.
type object struct {
	names  []string
	values map[string]any
}

// parse reads one JSON value: object, []any, string, json.Number, bool or nil.
func parse(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	value, err := next(decoder)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return value, nil
}

func next(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return nextObject(decoder)
	case json.Delim('['):
		list := []any{}
		for decoder.More() {
			item, err := next(decoder)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err = decoder.Token()
		return list, err
	}
	return token, nil
}

func nextObject(decoder *json.Decoder) (object, error) {
	o := object{values: map[string]any{}}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return o, err
		}
		text := name.(string)
		if _, twice := o.values[text]; twice {
			return o, fmt.Errorf("%q is given twice", text)
		}
		if o.values[text], err = next(decoder); err != nil {
			return o, err
		}
		o.names = append(o.names, text)
	}
	_, err := decoder.Token()
	return o, err
}

func (o object) has(name string) bool { _, has := o.values[name]; return has }

// text returns a member that is a string, or "".
func (o object) text(name string) string { text, _ := o.values[name].(string); return text }

func (o object) flag(name string) bool { flag, _ := o.values[name].(bool); return flag }

// object returns a member that is an object, or an empty one.
func (o object) object(name string) object { member, _ := o.values[name].(object); return member }

// objects returns the objects of a member that is a list.
func (o object) objects(name string) []object { return itemsOf[object](o.values[name]) }

// texts returns the strings of a member that is a list.
func (o object) texts(name string) []string { return itemsOf[string](o.values[name]) }

// itemsOf returns the items of a list that have this type.
func itemsOf[T any](value any) []T {
	var found []T
	list, _ := value.([]any)
	for _, item := range list {
		if one, ok := item.(T); ok {
			found = append(found, one)
		}
	}
	return found
}

// compact writes a value as JSON on one line.
func compact(value any) string {
	var text strings.Builder
	write(&text, value, "", false)
	return text.String()
}

// indented writes a value as readable JSON.
func indented(value any) string {
	var text strings.Builder
	write(&text, value, "\n", true)
	return text.String()
}

// width is the longest value, in bytes, that stays on one line.
const width = 72

func write(to *strings.Builder, value any, newline string, broken bool) {
	if broken && len(compact(value)) <= width {
		broken = false
	}
	open := func(bracket string) {
		to.WriteString(bracket)
		if broken {
			to.WriteString(newline + "  ")
		}
	}
	between := func(i int) {
		switch {
		case i == 0:
		case broken:
			to.WriteString("," + newline + "  ")
		default:
			to.WriteString(", ")
		}
	}
	shut := func(bracket string) {
		if broken {
			to.WriteString(newline)
		}
		to.WriteString(bracket)
	}
	switch value := value.(type) {
	case object:
		open("{")
		for i, name := range value.names {
			between(i)
			write(to, name, "", false)
			to.WriteString(": ")
			write(to, value.values[name], newline+"  ", broken)
		}
		shut("}")
	case []any:
		open("[")
		for i, item := range value {
			between(i)
			write(to, item, newline+"  ", broken)
		}
		shut("]")
	default:
		var plain bytes.Buffer
		encoder := json.NewEncoder(&plain)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(value) // strings, numbers and flags always can
		to.WriteString(strings.TrimSuffix(plain.String(), "\n"))
	}
}

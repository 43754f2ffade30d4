package server

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// optional is a field that may be absent but not null. Null would be a second way to say absent, and a dangerous one for a
// limit.
type optional[T any] struct {
	value T
	given bool
}

var errNull = errors.New("must not be null")

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (o *optional[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == 'n' {
		return errNull
	}
	o.given = true
	return json.UnmarshalDecode(dec, &o.value)
}

// nullable is a field that may be absent, and null for none.
type nullable[T any] struct {
	value *T // nil when it is null or absent
	given bool
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (n *nullable[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	n.given = true
	return json.UnmarshalDecode(dec, &n.value)
}

// or returns the value, or absent when it was not given.
func (o *optional[T]) or(absent T) T {
	if o.given {
		return o.value
	}
	return absent
}

package web

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Optional is a field that may be absent but not null. Null would be a second way to say absent, and a dangerous one for a
// limit.
type Optional[T any] struct {
	Value T
	Given bool
}

var errNull = errors.New("must not be null")

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (o *Optional[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == 'n' {
		return errNull
	}
	o.Given = true
	return json.UnmarshalDecode(dec, &o.Value)
}

// Nullable is a field that may be absent, and null for none.
type Nullable[T any] struct {
	Value *T // nil when it is null or absent
	Given bool
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (n *Nullable[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	n.Given = true
	return json.UnmarshalDecode(dec, &n.Value)
}

// Pointer returns the value, or nil when it was not given.
func (o *Optional[T]) Pointer() *T {
	if o.Given {
		return &o.Value
	}
	return nil
}

// Or returns the value, or absent when it was not given.
func (o *Optional[T]) Or(absent T) T {
	if o.Given {
		return o.Value
	}
	return absent
}

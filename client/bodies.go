package client

import (
	"bytes"
	standard "encoding/json"
	"errors"

	"github.com/goccy/go-json"
)

// encode returns the body of a request. It does not escape <, > and &, so that metadata is returned exactly as it was sent.
func encode(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	return json.MarshalWithOption(body, json.DisableHTMLEscape())
}

// decode reads a response. It refuses null, which the decoder would silently ignore.
func decode(text []byte, into any) error {
	if plain, ok := into.(*verbatim); ok {
		*plain = verbatim(text)
		return nil
	}
	if bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
		return errors.New("it is null")
	}
	return json.Unmarshal(text, into)
}

// verbatim is a response that is no JSON.
type verbatim string

// given is metadata or a state in the program's own types, which only encoding/json writes as their authors expect: go-json
// passes over a method MarshalJSON of a pointer in a type that contains itself.
type given struct{ value any }

// asGiven returns a program's value for a body: nil for none.
func asGiven(value any) any {
	if value == nil {
		return nil
	}
	return given{value}
}

// MarshalJSON implements json.Marshaler.
func (g given) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := standard.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(g.value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

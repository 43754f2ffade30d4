package token

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Audience is written as one text when there is one, else as a list (RFC 7519 §4.1.3).
type Audience []string

// IsZero reports whether it names no audience.
func (a Audience) IsZero() bool { return len(a) == 0 }

// MarshalJSON implements json.Marshaler.
func (a Audience) MarshalJSON() ([]byte, error) {
	if len(a) == 1 {
		return json.Marshal(a[0])
	}
	return json.Marshal([]string(a))
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (a *Audience) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != '"' {
		return json.UnmarshalDecode(d, (*[]string)(a))
	}
	var only string
	err := json.UnmarshalDecode(d, &only)
	*a = Audience{only}
	return err
}

// append writes the audience without reflection, like claims.append.
func (a Audience) append(text []byte) ([]byte, error) {
	if len(a) == 1 {
		return jsontext.AppendQuote(text, a[0])
	}
	return appendTexts(text, a)
}

package client

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[credential]"

// Credential is an API key, an agent's secret or a token. It prints as [credential] for every verb; string(c) is its text.
// It cannot be marshaled as JSON, which would either leak or lose it.
type Credential string

// Format writes [credential] for every verb.
func (Credential) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

// LogValue returns [credential] for slog.
func (Credential) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText always fails.
func (Credential) MarshalText() ([]byte, error) {
	return nil, errors.New("remit: a Credential cannot be marshaled: convert it to a string to store it")
}

// hidden is a credential in a field of a value that callers may print: fmt prints the address of a function, not its result.
// A Format method does not suffice, because fmt calls no methods on unexported fields.
type hidden func() string

func hide(text string) hidden { return func() string { return text } }

// reveal returns the text, which is empty for nil.
func (h hidden) reveal() string {
	if h == nil {
		return ""
	}
	return h()
}

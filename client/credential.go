package client

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[credential]"

// Credential is an API key, an agent's secret or a token. It prints as [credential], whatever the verb; string(c) is the
// text itself. It refuses to be written as JSON, where it would be either leaked or lost.
type Credential string

// Format writes the same for every verb.
func (Credential) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

// LogValue is what slog writes.
func (Credential) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText always fails.
func (Credential) MarshalText() ([]byte, error) {
	return nil, errors.New("remit: a Credential is not written as text: convert it to a string to store it")
}

// hidden is a credential inside a value that others may print: fmt shows where a function lies, not what it returns.
// A method would not do, as fmt calls none on unexported fields.
type hidden func() string

func hide(text string) hidden { return func() string { return text } }

// reveal is the text; that of nil is empty.
func (h hidden) reveal() string {
	if h == nil {
		return ""
	}
	return h()
}

package web

import "strings"

// InvalidRequest refuses malformed or invalid input. A field of "" means the request as a whole.
type InvalidRequest struct{ fields []FieldError }

func (e *InvalidRequest) Error() string {
	first := e.fields[0]
	if first.Field == "" {
		return first.Message
	}
	return first.Field + " " + first.Message
}

func Invalid(field, message string) error {
	return &InvalidRequest{[]FieldError{{field, message}}}
}

// MaxFieldErrors bounds a response: a small request can have very many errors.
const MaxFieldErrors = 20

// Validation collects the errors of a request, so that one response names them all.
type Validation struct{ Fields []FieldError }

func (v *Validation) Add(field, message string) {
	if len(v.Fields) == MaxFieldErrors {
		return
	}
	v.Fields = append(v.Fields, FieldError{field, message})
}

func (v *Validation) Require(ok bool, field, message string) {
	if !ok {
		v.Add(field, message)
	}
}

func (v *Validation) Err() error {
	if len(v.Fields) == 0 {
		return nil
	}
	return &InvalidRequest{v.Fields}
}

// maxNameShown bounds how many bytes of an unknown name are echoed to the client.
const maxNameShown = 64

func Shown(name string) string {
	if len(name) > maxNameShown {
		name = name[:maxNameShown] + "…"
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

func (e *InvalidRequest) Problem() Problem {
	p := NewProblem(400, "invalid_request", e.Error())
	p.Errors = e.fields
	return p
}

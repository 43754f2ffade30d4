package server

import "strings"

// invalidRequest refuses malformed or invalid input. A field of "" means the request as a whole.
type invalidRequest struct{ fields []fieldError }

func (e *invalidRequest) Error() string {
	first := e.fields[0]
	if first.Field == "" {
		return first.Message
	}
	return first.Field + " " + first.Message
}

func invalid(field, message string) error {
	return &invalidRequest{[]fieldError{{field, message}}}
}

// maxFieldErrors bounds a response: a small request can have very many errors.
const maxFieldErrors = 20

// validation collects the errors of a request, so that one response names them all.
type validation struct{ fields []fieldError }

func (v *validation) add(field, message string) {
	if len(v.fields) == maxFieldErrors {
		return
	}
	v.fields = append(v.fields, fieldError{field, message})
}

func (v *validation) require(ok bool, field, message string) {
	if !ok {
		v.add(field, message)
	}
}

func (v *validation) err() error {
	if len(v.fields) == 0 {
		return nil
	}
	return &invalidRequest{v.fields}
}

// maxNameShown bounds how many bytes of an unknown name are echoed to the client.
const maxNameShown = 64

func shown(name string) string {
	if len(name) > maxNameShown {
		name = name[:maxNameShown] + "…"
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

func (e *invalidRequest) Problem() problem {
	p := newProblem(400, "invalid_request", e.Error())
	p.Errors = e.fields
	return p
}

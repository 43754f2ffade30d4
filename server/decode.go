package server

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/valyala/fasthttp"
	"remit/money"
)

// maxDepth is how deep objects and arrays may stand in each other.
const maxDepth = 32

// decode reads the body into the request, which is a struct of optional fields. An absent body counts as an empty
// object, so that requests whose fields are all optional need none. It refuses what a lenient reader would repair:
// unknown fields, other spellings, duplicates, null, trailing bytes, a BOM, invalid UTF-8, depth.
func decode(ctx *fasthttp.RequestCtx, request any) error {
	body := ctx.Request.Body()
	if len(body) == 0 {
		return nil
	}
	if err := checkMediaType(&ctx.Request.Header); err != nil {
		return err
	}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return invalid("", "the body must not start with a byte order mark (byte 0)")
	}
	if at := tooDeep(body); at >= 0 {
		return invalid("", fmt.Sprintf("the body is nested deeper than %d (byte %d)", maxDepth, at))
	}
	if jsontext.Value(body).Kind() == 'n' {
		return invalid("", "the body must be a JSON object") // the decoder takes null for an empty one
	}
	if err := json.Unmarshal(body, request, json.RejectUnknownMembers(true)); err != nil {
		return explain(err, body)
	}
	return nil
}

// isJSON says whether a body is declared as JSON, in the usual way.
func isJSON(header *fasthttp.RequestHeader) bool {
	return bytes.Equal(header.ContentType(), []byte("application/json")) &&
		countHeader(header.RawHeaders(), fasthttp.HeaderContentType) == 1 && len(header.Peek(fasthttp.HeaderContentEncoding)) == 0
}

func checkMediaType(header *fasthttp.RequestHeader) error {
	given := header.ContentType()
	if isJSON(header) {
		return nil
	}
	if countHeader(header.RawHeaders(), fasthttp.HeaderContentType) > 1 || len(header.Peek(fasthttp.HeaderContentEncoding)) > 0 {
		return errMediaType
	}
	if mediaType, _, err := mime.ParseMediaType(string(given)); err != nil || mediaType != "application/json" {
		return errMediaType
	}
	return nil
}

// tooDeep returns where the body passes maxDepth, or -1. It need not know more of JSON than its strings: what is
// wrong otherwise is found by the decoder.
func tooDeep(body []byte) int {
	depth, inString := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

// optional is a field that may be absent but not null: null would be a second way to say the same, and for a limit the
// dangerous one.
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

// or returns the value, or another when it was not given.
func (o *optional[T]) or(absent T) T {
	if o.given {
		return o.value
	}
	return absent
}

// invalidRequest refuses malformed or invalid input. A field of "" stands for the request as a whole.
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

// maxFieldErrors bounds an answer: a small request can be wrong in very many places.
const maxFieldErrors = 20

// validation collects what is wrong with a request, so that one answer names all of it.
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

// explain names the field or the byte that the decoder stumbled over.
func explain(err error, body []byte) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			return invalid(fieldName(syntactic.JSONPointer), "is given twice")
		case !utf8.Valid(body):
			return invalid("", fmt.Sprintf("the body is not valid UTF-8 (byte %d)", syntactic.ByteOffset))
		}
		return invalid("", fmt.Sprintf("the body is not one well-formed JSON object (byte %d)", syntactic.ByteOffset))
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return invalid("", "the body is not one well-formed JSON object")
	}
	field := fieldName(semantic.JSONPointer)
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return invalid(field, "is not a field of this request")
	case field == "":
		return invalid("", "the body must be a JSON object")
	case errors.Is(err, errNull):
		return invalid(field, errNull.Error())
	}
	for _, cause := range []error{money.ErrNotANumber, money.ErrRange, money.ErrDecimals} {
		if errors.Is(err, cause) {
			return invalid(field, cause.Error())
		}
	}
	return invalid(field, "must be "+kindName(semantic.GoType))
}

// maxNameShown bounds how much of a name that the client made up comes back to it.
const maxNameShown = 64

// fieldName writes a JSON pointer as it is usually read: scopes[2], metadata.color.
func fieldName(pointer jsontext.Pointer) string {
	var name strings.Builder
	for part := range pointer.Tokens() {
		switch {
		case name.Len() > 0 && strings.Trim(part, "0123456789") == "":
			name.WriteString("[" + part + "]")
		case name.Len() > 0:
			name.WriteString("." + part)
		default:
			name.WriteString(part)
		}
	}
	return shown(name.String())
}

func shown(name string) string {
	if len(name) > maxNameShown {
		name = name[:maxNameShown] + "…"
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

func kindName(t reflect.Type) string {
	if t == nil {
		return "of another type"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64, reflect.Int:
		return "a whole number"
	case reflect.Slice:
		return "an array"
	default:
		return "an object"
	}
}

package web

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

// MaxDepth is how deep objects and arrays may nest.
const MaxDepth = 32

// Decode reads the body into the request, a struct of optional fields. An absent body counts as an empty object, so that a
// request with only optional fields needs none. It refuses what a lenient reader would repair: unknown fields, other
// spellings, duplicates, null, trailing bytes, a BOM, invalid UTF-8, deep nesting.
func Decode(ctx *fasthttp.RequestCtx, request any) error {
	body := ctx.Request.Body()
	if len(body) == 0 {
		return nil
	}
	if err := checkMediaType(&ctx.Request.Header); err != nil {
		return err
	}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return Invalid("", "the body must not start with a byte order mark (byte 0)")
	}
	if at := tooDeep(body); at >= 0 {
		return Invalid("", fmt.Sprintf("the body is nested deeper than %d (byte %d)", MaxDepth, at))
	}
	if jsontext.Value(body).Kind() == 'n' {
		return Invalid("", "the body must be a JSON object") // the decoder takes null for an empty object
	}
	if err := json.Unmarshal(body, request, json.RejectUnknownMembers(true)); err != nil {
		return Explain(err, body)
	}
	return nil
}

// Decoded decodes the body, and returns what the request asks for when it is valid.
func Decoded[R, W any](ctx *fasthttp.RequestCtx, check func(*R) (W, error)) (W, error) {
	var request R
	if err := Decode(ctx, &request); err != nil {
		var none W
		return none, err
	}
	return check(&request)
}

// IsJSON reports whether the body is declared as JSON in the usual spelling.
func IsJSON(header *fasthttp.RequestHeader) bool {
	return bytes.Equal(header.ContentType(), []byte("application/json")) &&
		CountHeader(header.RawHeaders(), fasthttp.HeaderContentType) == 1 && len(header.PeekCanonical(canonicalEncoding)) == 0
}

func checkMediaType(header *fasthttp.RequestHeader) error {
	given := header.ContentType()
	if IsJSON(header) {
		return nil
	}
	if CountHeader(header.RawHeaders(), fasthttp.HeaderContentType) > 1 || len(header.Peek(fasthttp.HeaderContentEncoding)) > 0 {
		return ErrMediaType
	}
	if mediaType, _, err := mime.ParseMediaType(string(given)); err != nil || mediaType != "application/json" {
		return ErrMediaType
	}
	return nil
}

// tooDeep returns where the body exceeds MaxDepth, or -1. It understands only strings and brackets; the decoder finds other
// errors.
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
			if depth++; depth > MaxDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

// Explain turns a decoder error into one that names the field or the byte.
func Explain(err error, body []byte) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			return Invalid(fieldName(syntactic.JSONPointer), "is given twice")
		case !utf8.Valid(body):
			return Invalid("", fmt.Sprintf("the body is not valid UTF-8 (byte %d)", syntactic.ByteOffset))
		}
		return Invalid("", fmt.Sprintf("the body is not one well-formed JSON object (byte %d)", syntactic.ByteOffset))
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return Invalid("", "the body is not one well-formed JSON object")
	}
	field := fieldName(semantic.JSONPointer)
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return Invalid(field, "is not a field of this request")
	case field == "":
		return Invalid("", "the body must be a JSON object")
	case errors.Is(err, errNull):
		return Invalid(field, errNull.Error())
	}
	for _, cause := range []error{money.ErrNotANumber, money.ErrRange, money.ErrDecimals} {
		if errors.Is(err, cause) {
			return Invalid(field, cause.Error())
		}
	}
	return Invalid(field, "must be "+kindName(semantic.GoType))
}

// fieldName writes a JSON pointer in the usual notation: scopes[2], metadata.color.
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
	return Shown(name.String())
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

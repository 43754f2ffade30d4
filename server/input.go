package server

import (
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
)

// Validation that several resources share.

const (
	maxNameLength        = 200           // characters
	maxDescriptionLength = 1000          // characters
	maxMetadata          = 16 << 10      // bytes, compacted
	maxGrace             = 7 * 24 * 3600 // seconds
	maxLifetimeSeconds   = 30 * 24 * 3600
	// An organization whose API key ends at once is locked out when the response with the new key is lost. An agent is not:
	// the API key can rotate its secret again.
	defaultKeyGrace    = 300 // seconds
	defaultSecretGrace = 0   // seconds
	defaultPage        = 50
	maxPage            = 200

	notAnID = "must be a UUID"
)

// idTextSize is the length of an id in its text form (RFC 9562 §4).
const idTextSize = 36

// parseID reads a UUID in the form of RFC 9562 §4, in any case. It refuses the other forms that libraries accept.
func parseID(text string) (uuid.UUID, bool) {
	id, err := uuid.Parse(text)
	return id, err == nil && len(text) == idTextSize
}

// pathID returns the id in the path.
func pathID(ctx *fasthttp.RequestCtx) (uuid.UUID, error) {
	return pathIDNamed(ctx, "id")
}

// pathIDNamed returns the id of a named path parameter.
func pathIDNamed(ctx *fasthttp.RequestCtx, name string) (uuid.UUID, error) {
	text, _ := ctx.UserValue(name).(string)
	id, ok := parseID(text)
	if !ok {
		return uuid.Nil, invalid(name, notAnID)
	}
	return id, nil
}

func (v *validation) name(name optional[string]) {
	length := utf8.RuneCountInString(name.value)
	switch {
	case !name.given:
		v.add("name", "is required")
	case length < 1 || length > maxNameLength:
		v.add("name", "must have 1 to 200 characters")
	}
}

// object returns a JSON object compacted, with its numbers unchanged, or "" when it is absent.
func (v *validation) object(field string, given optional[jsontext.Value], maxBytes int) string {
	if !given.given {
		return ""
	}
	if given.value.Kind() != '{' {
		v.add(field, "must be an object")
		return ""
	}
	compact := given.value.Clone()
	v.require(compact.Compact() == nil, field, "must be an object")
	v.require(len(compact) <= maxBytes, field, "must have at most "+strconv.Itoa(maxBytes>>10)+" KiB")
	return string(compact)
}

func (v *validation) id(field string, given optional[string]) uuid.UUID {
	if !given.given {
		v.add(field, "is required")
		return uuid.Nil
	}
	id, ok := parseID(given.value)
	v.require(ok, field, notAnID)
	return id
}

func (v *validation) within(field string, value, low, high int64) {
	if value < low || value > high {
		v.add(field, "must be from "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10))
	}
}

// nothing is the body of a request without fields.
type nothing struct{}

package web

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
)

// Validation that several resources share.

const (
	maxNameLength        = 200           // characters
	MaxDescriptionLength = 1000          // characters
	MaxMetadata          = 16 << 10      // bytes, compacted
	MaxGrace             = 7 * 24 * 3600 // seconds
	MaxLifetimeSeconds   = 30 * 24 * 3600
	// An organization whose API key ends at once is locked out when the response with the new key is lost. An agent is not:
	// the API key can rotate its secret again.
	DefaultKeyGrace    = 300 // seconds
	DefaultSecretGrace = 0   // seconds
	DefaultPage        = 50
	MaxPage            = 200

	NotAnID = "must be a UUID"
)

// idTextSize is the length of an id in its text form (RFC 9562 §4).
const idTextSize = 36

// ParseID reads a UUID in the form of RFC 9562 §4, in any case. It refuses the other forms that libraries accept.
func ParseID(text string) (uuid.UUID, bool) {
	id, err := uuid.Parse(text)
	return id, err == nil && len(text) == idTextSize
}

// PathID returns the id in the path.
func PathID(ctx *fasthttp.RequestCtx) (uuid.UUID, error) {
	return PathIDNamed(ctx, "id")
}

// PathIDNamed returns the id of a named path parameter.
func PathIDNamed(ctx *fasthttp.RequestCtx, name string) (uuid.UUID, error) {
	text, _ := ctx.UserValue(name).(string)
	id, ok := ParseID(text)
	if !ok {
		return uuid.Nil, Invalid(name, NotAnID)
	}
	return id, nil
}

// Name requires a name of 1 to 200 characters.
func (v *Validation) Name(name Optional[string]) {
	length := utf8.RuneCountInString(name.Value)
	switch {
	case !name.Given:
		v.Add("name", "is required")
	case length < 1 || length > maxNameLength:
		v.Add("name", "must have 1 to 200 characters")
	}
}

// Object returns a JSON object compacted, with its numbers unchanged, or "" when it is absent.
func (v *Validation) Object(field string, given Optional[jsontext.Value], maxBytes int) string {
	if !given.Given {
		return ""
	}
	if given.Value.Kind() != '{' {
		v.Add(field, "must be an object")
		return ""
	}
	compact := given.Value.Clone()
	v.Require(compact.Compact() == nil, field, "must be an object")
	v.Require(len(compact) <= maxBytes, field, "must have at most "+strconv.Itoa(maxBytes>>10)+" KiB")
	return string(compact)
}

// ID requires a UUID.
func (v *Validation) ID(field string, given Optional[string]) uuid.UUID {
	if !given.Given {
		v.Add(field, "is required")
		return uuid.Nil
	}
	id, ok := ParseID(given.Value)
	v.Require(ok, field, NotAnID)
	return id
}

// Within requires a number from low to high.
func (v *Validation) Within(field string, value, low, high int64) {
	if value < low || value > high {
		v.Add(field, "must be from "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10))
	}
}

// Nothing is the body of a request without fields.
type Nothing struct{}

// Rotation is the body of a request that rotates a credential.
type Rotation struct {
	Grace Optional[int64] `json:"grace_seconds"`
}

// DecodeGrace returns how long the previous credential stays valid: usual seconds unless the request says otherwise.
func DecodeGrace(ctx *fasthttp.RequestCtx, usual int64) (time.Duration, error) {
	var request Rotation
	if err := Decode(ctx, &request); err != nil {
		return 0, err
	}
	return request.Duration(usual)
}

// Duration is DecodeGrace for a request that is decoded already.
func (r Rotation) Duration(usual int64) (time.Duration, error) {
	var v Validation
	grace := r.Grace.Or(usual)
	v.Within("grace_seconds", grace, 0, MaxGrace)
	return time.Duration(grace) * time.Second, v.Err()
}

const maxReason = 500 // characters

type reasonRequest struct {
	Reason Optional[string] `json:"reason"`
}

// DecodeReason returns why an agent or a session is suspended or resumed, "" for no reason.
func DecodeReason(ctx *fasthttp.RequestCtx) (string, error) {
	var request reasonRequest
	if err := Decode(ctx, &request); err != nil {
		return "", err
	}
	var v Validation
	v.Reason(request.Reason.Value)
	return request.Reason.Value, v.Err()
}

// Reason checks the reason of a suspension.
func (v *Validation) Reason(reason string) {
	v.Require(utf8.RuneCountInString(reason) <= maxReason, "reason", "must have at most 500 characters")
}

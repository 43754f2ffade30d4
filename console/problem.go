package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"remit/server/pages"
)

// problem is why something was not done: an error response of the API, or one of a page's own.
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"` // for people

	RequiredRole string  `json:"required_role"`
	Limit        string  `json:"limit"` // that it does not fit into; "" for none
	Errors       []fault `json:"errors"`

	retryAfter string // seconds; "" for none
	methods    string // of the path, when it was asked with another; "" otherwise
}

func (p *problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail) }

// fault is what is wrong with one field.
type fault struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// text says what is wrong in one sentence.
func (p *problem) text() string { return p.textWith(func(field string) string { return field }) }

// textWith is text with other names for the fields.
func (p *problem) textWith(name func(field string) string) string {
	switch {
	case p.Code == "insufficient_role":
		return "Your API key may not do this: it needs the role " + p.RequiredRole + "."
	case p.Code == "rate_limited" && p.retryAfter != "":
		return "Too many attempts. Try again in " + p.retryAfter + " seconds."
	case p.Code == codeOutcomeUnknown:
		return "The store did not answer in time, so it may have been done all the same. Look before you try again."
	}
	detail := strings.TrimSuffix(cmp.Or(p.Detail, http.StatusText(p.Status)), ".")
	for i, e := range p.Errors {
		text := strings.TrimSpace(name(e.Field) + " " + e.Message)
		if i == 0 && p.Detail == strings.TrimSpace(e.Field+" "+e.Message) {
			detail = text
		} else if !strings.Contains(detail, e.Message) {
			detail += "; " + text
		}
	}
	return sentence(detail) + "."
}

func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// invalid is the problem of typed input.
func invalid(detail string) *problem {
	return &problem{Status: http.StatusBadRequest, Code: "invalid_request", Detail: detail}
}

// at returns the problem as one of this field.
func (p *problem) at(field string) *problem {
	own := *p
	own.Errors = []fault{{field, p.Detail}}
	return &own
}

var (
	errSignedOut  = errors.New("no one is signed in, or the sign-in has ended")
	errNoPage     = &problem{Status: http.StatusNotFound, Code: "not_found", Detail: "there is no such page"}
	errNotPrivate = &problem{Status: http.StatusForbidden, Code: "forbidden", Detail: "the console works over HTTPS, or on this machine at 127.0.0.1 " +
		"or localhost. Behind a proxy the service must trust it (--trusted-proxies), and the proxy must send X-Forwarded-Proto"}
	errNoForm    = &problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Detail: "a change is a form of these pages"}
	errLargeForm = &problem{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Detail: "the form is larger than any form of these pages"}
	errPanicked  = errors.New("it ended unexpectedly")
	errOtherSite = &problem{Status: http.StatusForbidden, Code: "forbidden", Detail: "another site asked for this"}
	errCSRF      = &problem{Status: http.StatusForbidden, Code: "forbidden",
		Detail: "the form belongs to another sign-in. Go back, reload the page and try again"}
)

const (
	// codeInternal is the code of an unexpected error.
	codeInternal = "internal"
	// codeOutcomeUnknown is the code of a change that may have been made.
	codeOutcomeUnknown = "outcome_unknown"
)

// problemOf returns the problem of any error. Without one it is that of an unexpected error.
func problemOf(err error) *problem {
	var p *problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, pages.ErrNoKeys):
		return &problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: "the service has just started, or cannot reach its Redis"}
	}
	return &problem{Status: http.StatusInternalServerError, Code: codeInternal, Detail: "the page could not be made"}
}

// isUnauthorized reports whether an API key is not valid any more.
func isUnauthorized(err error) bool {
	return problemOf(err).Status == http.StatusUnauthorized
}

// isOver reports whether a sign-in, its API key, or its organization's access has ended: pages that are live end then.
func isOver(err error) bool {
	return isUnauthorized(err) || errors.Is(err, errSignedOut) || problemOf(err).Code == "organization_suspended"
}

func isNotFound(err error) bool {
	return problemOf(err).Status == http.StatusNotFound
}

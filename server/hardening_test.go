package server

import (
	"strings"
	"testing"

	"remit/server/internal/web"
)

func TestAnAnswerNamesAFewOfManyFaults(t *testing.T) {
	t.Parallel()
	var v web.Validation
	for range 10_000 {
		v.Add("field", "is wrong")
	}
	if len(v.Fields) != web.MaxFieldErrors {
		t.Errorf("%d faults are named", len(v.Fields))
	}
	var scopes web.Validation
	scopes.Scopes(strings.Split(strings.Repeat("\x00,", 100_000), ","))
	if len(scopes.Fields) != 1 {
		t.Errorf("%d faults of too many scopes are named", len(scopes.Fields))
	}
}

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
	wantEqual(t, "faults that are named", len(v.Fields), web.MaxFieldErrors)
	var scopes web.Validation
	scopes.Scopes(strings.Split(strings.Repeat("\x00,", 100_000), ","))
	wantEqual(t, "faults of too many scopes that are named", len(scopes.Fields), 1)
}

package server

import (
	"strings"
	"testing"
)

func TestAnAnswerNamesAFewOfManyFaults(t *testing.T) {
	t.Parallel()
	var v validation
	for range 10_000 {
		v.add("field", "is wrong")
	}
	if len(v.fields) != maxFieldErrors {
		t.Errorf("%d faults are named", len(v.fields))
	}
	var scopes validation
	scopes.scopes(strings.Split(strings.Repeat("\x00,", 100_000), ","))
	if len(scopes.fields) != 1 {
		t.Errorf("%d faults of too many scopes are named", len(scopes.fields))
	}
}

func TestADefaultOfNoValueIsKept(t *testing.T) {
	t.Parallel()
	if d := (SessionDefaults{MaxActions: 5, Lifetime: 1}).filled(); d.MaxValue != 0 || d.MaxActions != 5 {
		t.Errorf("%+v", d)
	}
}

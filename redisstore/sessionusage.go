package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// TypeUsage is what was used of one action type.
type TypeUsage struct {
	ActionType  string // "" for what was used without one
	ActionCount int64
	Value       money.MicroUSD
}

var getUsage = kernel.NewScript("records/get_usage", reads)

// SessionUsage returns what a session itself has used, by action type in their order, what has no type last. It does not contain
// what its children used. Errors: ErrInvalidAPIKey or ErrInvalidToken, ErrUnknownSession.
func (s *Store) SessionUsage(ctx context.Context, c Caller, session uuid.UUID) ([]TypeUsage, error) {
	act, err := s.core.ActOnSession(ctx, c, session, nil)
	if err != nil {
		return nil, err
	}
	keys := []string{s.keys.Agent(act.Agent), s.keys.Session(act.Agent, session)}
	read := func(anyway string) (*reply, error) {
		return s.client.Run(ctx, act.Flow, getUsage, keys, act.Organization, act.Agent, act.Family, anyway)
	}
	r, err := s.repeatWhileDue(ctx, act, session, func() (*reply, error) { return read("") })
	if redisclient.RefusedWrite(err) {
		r, err = read("1")
	}
	if err != nil {
		return nil, act.ErrorFor(err)
	}
	used, err := typesOf(r)
	return used, cmp.Or(r.Err, err)
}

// typesOf reads a reply of get_usage.lua.
func typesOf(r *reply) ([]TypeUsage, error) {
	untyped := TypeUsage{ActionCount: r.Number(0), Value: kernel.MoneyAt(r, 1)}
	types := r.List(2)
	if types.Err != nil {
		return nil, types.Err
	}
	byName := map[string]*TypeUsage{}
	for i := 0; i+1 < len(types.Values); i += 2 {
		t, err := readType(types.Text(i), types.Text(i+1))
		if err != nil {
			return nil, err
		}
		untyped.ActionCount -= t.ActionCount
		untyped.Value -= t.Value
		if same := byName[t.ActionType]; same != nil { // a client's own "other"
			t.ActionCount += same.ActionCount
			t.Value += same.Value
		}
		byName[t.ActionType] = &t
	}
	used := make([]TypeUsage, 0, len(byName)+1)
	for _, t := range byName {
		used = append(used, *t)
	}
	slices.SortFunc(used, func(a, b TypeUsage) int { return cmp.Compare(a.ActionType, b.ActionType) })
	if untyped.ActionCount != 0 || untyped.Value != 0 {
		used = append(used, untyped)
	}
	return used, types.Err
}

// readType reads a session's field t:<name>, see budgets/include/action_types.lua.
func readType(name, text string) (TypeUsage, error) {
	numbers, err := kernel.NumbersOf(strings.Fields(text), 3)
	if err != nil {
		return TypeUsage{}, err
	}
	return TypeUsage{kernel.TypeNamed(name), numbers[1], money.MicroUSD(numbers[2])}, nil
}

// inOneLine does what budgets/include/one_line.lua does.
var inOneLine = strings.NewReplacer(`\`, `\\`, "\n", `\n`)

// kind returns what charge_session.lua takes: the field of the action type, and before it the scope.
func (c Charge) kind() string {
	var kind string
	if c.ActionType != "" {
		kind = "p:" + storedType(c.ActionType)
	}
	if c.tellsScopes {
		return "t" + c.Scope + "\n" + kind
	}
	if c.Scope != "" {
		kind = "s" + c.Scope + "\n" + kind
	}
	return kind
}

// withType returns what a batch has as the scope of a charge: the scope, and behind a space the action type.
func (c Charge) withType() string {
	if c.ActionType == "" {
		return c.Scope
	}
	return c.Scope + " " + storedType(c.ActionType)
}

// storedType is the inverse of TypeNamed, as scripts take it.
func storedType(actionType string) string { return inOneLine.Replace(actionType) }

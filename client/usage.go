package client

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"

	"remit/money"
)

// maxReport is the most bytes of a report of usage, which has up to 10,000 lines.
const maxReport = 16 << 20

// UsageParams say what a report of usage contains. The zero value reports the last 30 days by day.
type UsageParams struct {
	FirstDay string   // such as 2026-11-01, in UTC; empty: 29 days before LastDay
	LastDay  string   // at most 399 days after FirstDay; empty: today
	GroupBy  []string // one or two of day, agent, session and action_type; empty: day
	AgentID  string   // only this agent's usage; empty: all agents'
}

// UsageLine is what a group used. It has the members of the groups that the report tells apart.
type UsageLine struct {
	Day         string         `json:"day"` // such as 2026-11-21, in UTC
	AgentID     string         `json:"agent_id"`
	SessionID   *string        `json:"session_id"`  // nil: sessions that are no longer kept, together
	ActionType  *string        `json:"action_type"` // nil: charges without one
	ActionCount int64          `json:"action_count"`
	Value       money.MicroUSD `json:"value_usd"` // below 0 when more was given back than used
}

// Usage reports what the organization used. A report of more than 10,000 lines is an invalid request: ask for fewer days or for
// one agent.
func (o *Organization) Usage(ctx context.Context, p UsageParams) ([]UsageLine, error) {
	return o.caller.usage(ctx, p.path("json"))
}

// UsageCSV is Usage as a table with a header (RFC 4180), in which no action type is a formula to a spreadsheet.
func (o *Organization) UsageCSV(ctx context.Context, p UsageParams) (string, error) {
	table, err := decoded[verbatim](ctx, o.caller, call{method: http.MethodGet, path: p.path("csv"), most: maxReport})
	return string(table), err
}

// SessionUsage reports what a session was used for, as Session.Usage does.
func (o *Organization) SessionUsage(ctx context.Context, id string) ([]UsageLine, error) {
	return o.session(id).Usage(ctx)
}

// Usage reports what the session was used for, by action type, without what its children used. The first 64 types are separate;
// the others are together in other. The lines add up to what the session shows.
func (s *Session) Usage(ctx context.Context) ([]UsageLine, error) {
	return s.caller.usage(ctx, sessionPath(s.id)+"/usage")
}

func (p UsageParams) path(format string) string {
	return withQuery("/v1/usage", "from", p.FirstDay, "to", p.LastDay, "group_by", strings.Join(p.GroupBy, ","),
		"agent_id", p.AgentID, "format", format)
}

func (c *caller) usage(ctx context.Context, path string) ([]UsageLine, error) {
	lines, err := decoded[[]usageLine](ctx, c, call{method: http.MethodGet, path: path, most: maxReport})
	if err != nil {
		return nil, err
	}
	read := make([]UsageLine, len(lines))
	for i, l := range lines {
		read[i] = l.UsageLine
		read[i].Value = money.MicroUSD(l.Value)
	}
	return read, nil
}

// usageLine is a UsageLine on the wire.
type usageLine struct {
	UsageLine
	Value change `json:"value_usd"`
}

// change is an amount that may be below 0, or above money.Max as sums over sessions may be.
type change money.MicroUSD

// UnmarshalJSON implements json.Unmarshaler.
func (c *change) UnmarshalJSON(number []byte) error {
	const decimals = "000000"
	digits, negative := bytes.CutPrefix(number, []byte("-"))
	whole, fraction, _ := bytes.Cut(digits, []byte("."))
	if len(fraction) > len(decimals) {
		return money.ErrDecimals
	}
	amount, err := strconv.ParseUint(string(whole)+string(fraction)+decimals[len(fraction):], 10, 63)
	if err != nil {
		return money.ErrNotANumber
	}
	*c = change(amount) //nolint:gosec // 63 bits
	if negative {
		*c = -*c
	}
	return nil
}

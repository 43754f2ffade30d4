package records

import (
	"encoding/csv"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/redisstore/records"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) usageRoutes(r *web.Routes) {
	r.Get("/v1/usage", redisstore.Viewer, access.ByKey(h.getUsage))
}

// mostUsageBytes is about how large a report may be: 256 bytes a line, and as much for the action types of most.
const mostUsageBytes = records.MaxUsageLines * 512

// getUsage returns what the organization used in some days, by one or two groups.
func (h *Handlers) getUsage(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	q, err := readUsageQuery(ctx, h.Clock())
	if err != nil {
		return err
	}
	if err := h.Front.ReserveAnswer(ctx, mostUsageBytes); err != nil {
		return err
	}
	lines, err := h.Store.UsageReport(web.RequestContext(ctx), key, q.UsageQuery)
	if errors.Is(err, records.ErrTooManyUsageLines) {
		return web.Invalid("group_by", tooManyLines)
	}
	if err != nil {
		return err
	}
	if q.csv {
		return answerUsageCSV(ctx, q, lines)
	}
	return web.AnswerList(ctx, lines, q.appendLine)
}

// appendLine writes a line of a report: its groups, and what they used.
func (q usageQuery) appendLine(o web.Object, line records.UsageLine) (web.Object, error) {
	o = append(o, '{')
	for _, group := range q.Groups {
		var err error
		switch group {
		case records.ByDay:
			o = o.Plain(`"day":`, dateOf(line.Day))
		case records.ByAgent:
			o = o.ID(`"agent_id":`, line.Agent)
		case records.BySession:
			o = o.IDOrNull(`"session_id":`, line.Session)
		case records.ByActionType:
			o, err = o.TextOrNull(`"action_type":`, line.ActionType)
		}
		if err != nil {
			return o, err
		}
		o = append(o, ',')
	}
	o = o.Number(`"action_count":`, line.ActionCount)
	return append(o.Amount(`,"value_usd":`, line.Value), '}'), nil
}

func dateOf(day int) string {
	return time.Unix(int64(day)*24*60*60, 0).UTC().Format(usageDateLayout)
}

// usageColumns are the names of the groups in a report.
var usageColumns = map[records.UsageGroup]string{
	records.ByDay: "day", records.ByAgent: "agent_id", records.BySession: "session_id", records.ByActionType: "action_type",
}

// answerUsageCSV writes a report as RFC 4180 has it.
func answerUsageCSV(ctx *fasthttp.RequestCtx, q usageQuery, lines []records.UsageLine) error {
	ctx.Response.Header.SetContentType("text/csv; charset=utf-8; header=present")
	table := csv.NewWriter(ctx.Response.BodyWriter())
	table.UseCRLF = true
	cells := make([]string, 0, mostUsageGroups+2)
	for _, group := range q.Groups {
		cells = append(cells, usageColumns[group])
	}
	_ = table.Write(append(cells, "action_count", "value_usd")) // the writer keeps its first error
	for _, line := range lines {
		_ = table.Write(q.cells(cells[:0], line))
	}
	table.Flush()
	return table.Error()
}

func (q usageQuery) cells(cells []string, line records.UsageLine) []string {
	for _, group := range q.Groups {
		switch group {
		case records.ByDay:
			cells = append(cells, dateOf(line.Day))
		case records.ByAgent:
			cells = append(cells, line.Agent.String())
		case records.BySession:
			cells = append(cells, idOrEmpty(line.Session))
		case records.ByActionType:
			cells = append(cells, harmless(line.ActionType))
		}
	}
	return append(cells, strconv.FormatInt(line.ActionCount, 10), line.Value.String())
}

func idOrEmpty(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}

// harmless returns a text that no spreadsheet takes for a formula: agents choose their action types. Where a list has semicolons,
// a spreadsheet begins a cell after each of them, quoted or not; others begin one after a tab or a line break.
func harmless(text string) string {
	var safe strings.Builder
	begins := true
	for _, r := range text {
		if begins && strings.ContainsRune("=+-@\t\r\n＝＋－＠", r) {
			safe.WriteByte('\'')
		}
		safe.WriteRune(r)
		begins = strings.ContainsRune(";\t\r\n", r) || begins && (unicode.IsSpace(r) || r == '"')
	}
	return safe.String()
}

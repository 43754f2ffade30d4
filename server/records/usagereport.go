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
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) usageRoutes(r *web.Routes) {
	r.Get("/v1/usage", redisstore.Viewer, access.ByKey(h.getUsage))
}

// mostUsageBytes is about how large a report may be: 256 bytes a line, and as much for the action types of most.
const mostUsageBytes = redisstore.MaxUsageLines * 512

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
	if errors.Is(err, redisstore.ErrTooManyUsageLines) {
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
func (q usageQuery) appendLine(o web.Object, line redisstore.UsageLine) (web.Object, error) {
	o = append(o, '{')
	for _, group := range q.Groups {
		var err error
		switch group {
		case redisstore.ByDay:
			o = o.Plain(`"day":`, dateOf(line.Day))
		case redisstore.ByAgent:
			o = o.ID(`"agent_id":`, line.Agent)
		case redisstore.BySession:
			o = o.IDOrNull(`"session_id":`, line.Session)
		case redisstore.ByActionType:
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
var usageColumns = map[redisstore.UsageGroup]string{
	redisstore.ByDay: "day", redisstore.ByAgent: "agent_id", redisstore.BySession: "session_id", redisstore.ByActionType: "action_type",
}

// answerUsageCSV writes a report as RFC 4180 has it.
func answerUsageCSV(ctx *fasthttp.RequestCtx, q usageQuery, lines []redisstore.UsageLine) error {
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

func (q usageQuery) cells(cells []string, line redisstore.UsageLine) []string {
	for _, group := range q.Groups {
		switch group {
		case redisstore.ByDay:
			cells = append(cells, dateOf(line.Day))
		case redisstore.ByAgent:
			cells = append(cells, line.Agent.String())
		case redisstore.BySession:
			cells = append(cells, idOrEmpty(line.Session))
		case redisstore.ByActionType:
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

package records

import (
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"remit/redisstore/records"
	"remit/server/internal/web"
)

const (
	mostUsageDays    = 400
	usualUsageDays   = 30
	mostUsageGroups  = 2
	usageDateLayout  = time.DateOnly
	unknownGroup     = "must be one or two of day, agent, session and action_type, separated by a comma"
	notADate         = "must be a date as 2026-11-22"
	tooLongRange     = "must be at most 399 days after from"
	rangeEndsFirst   = "must not be before from"
	tooManyLines     = "gives more than 10000 lines; ask for fewer days or for one agent"
	unknownUsageForm = "must be json or csv"
)

// usageQuery is what a report of usage is to contain, and its format.
type usageQuery struct {
	records.UsageQuery
	csv bool
}

func readUsageQuery(ctx *fasthttp.RequestCtx, now time.Time) (usageQuery, error) {
	var v web.Validation
	q := usageQuery{UsageQuery: records.UsageQuery{
		From: -1, To: records.UsageDay(now), Groups: []records.UsageGroup{records.ByDay},
	}}
	for field, text := range v.Parameters(ctx, "list", "from", "to", "group_by", "agent_id", "format") {
		switch field {
		case "from":
			q.From = validDate(&v, field, text)
		case "to":
			q.To = validDate(&v, field, text)
		case "group_by":
			q.Groups = validUsageGroups(&v, text)
		case "agent_id":
			q.Agent = v.FilterID(field, text)
		case "format":
			v.Require(text == "json" || text == "csv", field, unknownUsageForm)
			q.csv = text == "csv"
		}
	}
	if q.From == -1 {
		q.From = q.To - usualUsageDays + 1
	}
	if len(v.Fields) == 0 {
		v.Require(q.To >= q.From, "to", rangeEndsFirst)
		v.Require(q.To-q.From < mostUsageDays, "to", tooLongRange)
	}
	return q, v.Err()
}

// validDate reads a date as days since 1970.
func validDate(v *web.Validation, field, text string) int {
	day, err := time.Parse(usageDateLayout, text)
	v.Require(err == nil && day.Year() >= 1970, field, notADate)
	return records.UsageDay(day)
}

// validUsageGroups reads what the lines tell apart.
func validUsageGroups(v *web.Validation, text string) []records.UsageGroup {
	known := []records.UsageGroup{records.ByDay, records.ByAgent, records.BySession, records.ByActionType}
	var groups []records.UsageGroup
	for name := range strings.SplitSeq(text, ",") {
		group := records.UsageGroup(name)
		if !slices.Contains(known, group) || slices.Contains(groups, group) || len(groups) == mostUsageGroups {
			v.Add("group_by", unknownGroup)
			return nil
		}
		groups = append(groups, group)
	}
	return groups
}

package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestUsageIsShownByEachGroupWithItsExactSum(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer) // which charges 1.25 as llm.call and holds 2, which is not spent
	other := w.newAgent("other")
	session := w.newSession(other, nil)
	w.asAdmin("POST", "/v1/sessions/"+session+"/actions", map[string]any{"value_usd": 0.000001})
	today := dayOf(time.Now())
	for groupBy, want := range map[string][]string{
		"":                    {"Spent $1.250001", today},
		"agent":               {"scout", "other", "$1.25", "$0.000001", "99.9 %", "< 0.1 %"},
		"session":             {short(ids["session"]), short(session)},
		"action_type":         {"llm.call", "without a type"},
		"day,agent":           {today, "scout", "other"},
		"agent,action_type":   {"scout · llm.call", "other · without a type"},
		"session,action_type": {"Session", "Action type", "llm.call"},
	} {
		page := b.whole(query(usagePath, "group_by", groupBy)).want(http.StatusOK).says("Spent $1.250001", "Actions 3").says(want...)
		if got := fieldsOf(page.formNode(usagePath, "get")).Get("group_by"); groupBy != "" && got != groupBy {
			t.Errorf("by %s the form has %s", groupBy, got)
		}
	}
	b.whole(query(usagePath, "agent", other)).says("Spent $0.000001").saysNot("$1.25")
	b.whole(query(usagePath, "from", "2020-01-01", "to", "2020-12-31")).want(http.StatusOK).says("Spent $0.00")
	b.whole(query(usagePath, "agent", uuid.NewString())).want(http.StatusNotFound)
}

func TestAnExportHasTheBytesOfTheAPI(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	w.sampleOf(texts{"scout", "more", `=HYPERLINK("https://evil.example","x"),;+1`, "s", "m"})
	for _, format := range []string{"csv", "json"} {
		page := b.whole(query(usagePath, "group_by", "day,action_type"))
		got := b.get(page.way("Export as " + strings.ToUpper(format))).want(http.StatusOK)
		days := dayOf(time.Now().AddDate(0, 0, -29)) + "-" + dayOf(time.Now())
		want := `attachment; filename="remit-usage-` + days + "-by-day-action_type." + format + `"`
		wantEqual(t, "it", got.header.Get("Content-Disposition"), want)
		program := w.browser(t)
		program.headers["X-API-Key"] = w.keys[viewer]
		ofAPI := program.get(query("/v1/usage", "group_by", "day,action_type", "format", format))
		wantEqual(t, format, got.text, ofAPI.text)
		wantEqual(t, format+": Content-Type", got.header.Get("Content-Type"), ofAPI.header.Get("Content-Type"))
	}
	refused := b.get(query(usagePath+"/export", "from", "2026-02-31\r\nX: y")).want(http.StatusBadRequest)
	wantEqual(t, "a refusal's Content-Disposition", refused.header.Get("Content-Disposition"), "")
	wantEqual(t, "a refusal is a page", refused.page != nil, true)
}

func TestAReportTakesLittleMemoryAndWithoutRoomOnlyItsFirstPage(t *testing.T) {
	t.Parallel()
	f := newFleets(4<<20, func(string) {})
	u := newUsageReports(f.pool, func(string) {})
	lines := make([]usageLine, 10_000)
	for i := range lines {
		lines[i] = usageLine{AgentID: idOf(i), ActionType: new("x"), ActionCount: 1, Value: amount(i)}
	}
	var reports []*usageReport
	organization := uuid.New()
	for range 3 {
		r := &usageReport{of: usageOf{organization: organization, agent: uuid.NewString()}, idle: time.AfterFunc(time.Hour, func() {})}
		u.known[r.of] = r
		u.keep(r, usageTableOf(lines, time.Now()))
		reports = append(reports, r)
	}
	if n := f.pool.Reserved(); n == 0 || n > 2<<20 {
		t.Errorf("%d bytes are reserved", n)
	}
	for _, r := range reports {
		table := r.last.Load()
		if table.Lines != 10_000 || table.Value != 9_999*10_000/2 || table.rows[0].value != 9_999 || table.Cut != (len(table.rows) == usagePerPage) {
			t.Errorf("%d lines, %d rows, %d in all", table.Lines, len(table.rows), table.Value)
		}
	}
	wantEqual(t, "the first is cut", reports[0].last.Load().Cut, false)
	wantEqual(t, "the third is cut", reports[2].last.Load().Cut, true)
	for _, r := range reports {
		u.drop(r)
	}
	wantEqual(t, "the bytes that are reserved after all are dropped", f.pool.Reserved(), 0)
	wantEqual(t, "reports after all are dropped", len(u.known), 0)
}

func TestReportsThatAreKeptAreBounded(t *testing.T) {
	t.Parallel()
	u := newUsageReports(newFleets(1<<20, func(string) {}).pool, func(string) {})
	one, now := uuid.New(), time.Now()
	add := func(times int, organization func() uuid.UUID, reading chan struct{}) (kept int) {
		for range times {
			of := usageOf{organization: organization(), agent: uuid.NewString()}
			if u.makeRoom(of.organization) {
				now = now.Add(time.Second)
				u.known[of] = &usageReport{of: of, idle: time.AfterFunc(time.Hour, func() {}), used: now, reading: reading}
			}
		}
		return len(u.known)
	}
	wantEqual(t, "reports of an organization", add(2*mostOwnReports, func() uuid.UUID { return one }, nil), mostOwnReports)
	wantEqual(t, "reports of all", add(2*mostReports, uuid.New, nil), mostReports)
	wantEqual(t, "reports that are being read", add(mostReports, uuid.New, make(chan struct{})), mostReports)
	wantEqual(t, "one of them makes room", u.makeRoom(uuid.New()), false)
}

func TestAReportIsPagedWithoutBeingReadAgain(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	one := w.newAgent("one")
	for n := range 2*usagePerPage + 1 {
		w.asAdmin("POST", "/v1/sessions/"+w.newSession(one, nil)+"/actions", map[string]any{"value_usd": float64(n) / 10})
	}
	path := usagePath + "?group_by=session"
	page := b.whole(path).want(http.StatusOK).says("101 lines", "$505.00", "1.9 %")
	for range 2 {
		page = b.get(page.way("Next page")).want(http.StatusOK)
	}
	wantEqual(t, "the rows of the third page", len(page.rows("Session")), 1)
	wantEqual(t, "the third page leads to", page.way("Next page"), "")
	b.leadsBack(path, "Session")
}

func TestTwoAgentsOfOneNameAreDrawnApart(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	for i := range 2 {
		w.asAdmin("POST", "/v1/sessions/"+w.newSession(w.newAgent("twin"), nil)+"/actions", map[string]any{"value_usd": i + 1})
	}
	var sums []string
	for node := range b.whole(usagePath + "?group_by=day,agent").want(http.StatusOK).elements("span") {
		if attribute(node, "class") == "chart-figure" {
			sums = append(sums, textOf(node))
		}
	}
	wantEqual(t, "the legend", sums, []string{"$2.00", "$1.00"})
}

func TestALongReportIsWaitedForAndThenShown(t *testing.T) {
	t.Parallel()
	w, b, _ := sampled(t, viewer)
	for range usageTurns { // other organizations' reports
		w.console.reports.turns <- struct{}{}
	}
	waits := b.get(usagePath).want(http.StatusOK).says("is being added up")
	wantContains(t, "what asks the script to look again", waits.text, "data-again>")
	for range usageTurns {
		<-w.console.reports.turns
	}
	b.whole(usagePath).want(http.StatusOK).says("Spent $1.25")
}

func TestAReportStaysThoughTheNextReadingFails(t *testing.T) {
	t.Parallel()
	u := newUsageReports(nil, func(string) {})
	of := usageOf{organization: uuid.New()}
	r := &usageReport{of: of, next: time.Now().Add(time.Hour), failed: errPanicked, idle: time.AfterFunc(time.Hour, func() {})}
	defer r.idle.Stop()
	r.last.Store(&usageTable{Lines: 7})
	u.known[of] = r
	if got, err := u.latest(of, api{}, time.Now(), true); err != nil || got == nil || got.Lines != 7 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestLinesOfOneValueAreDrawnWithTheirNames(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	session := w.newSession(w.newAgent("scout"), map[string]any{"max_actions": 100})
	for i := range 30 {
		w.asAdmin("POST", "/v1/sessions/"+session+"/actions", map[string]any{"value_usd": 0.01, "action_type": fmt.Sprint("type", i)})
	}
	b.whole(query(usagePath, "group_by", "action_type")).says("type29", "others").saysNot("(no name)")
}

func TestSharesAreExactToATenthOfAPercent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		part, whole int64
		want        string
	}{
		{1, 3, "33.3 %"}, {3, 3, "100.0 %"}, {1, 1_000_000, "< 0.1 %"}, {0, 5, "0.0 %"}, {-1, 5, "–"}, {1, 0, "–"}, {5, -5, "–"},
	} {
		wantEqual(t, fmt.Sprint(test.part, " of ", test.whole), shareText(test.part, test.whole), test.want)
	}
}

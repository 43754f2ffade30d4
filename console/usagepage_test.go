package console

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// report gets a page of usage once its report is there.
func (b *browser) report(path string) *answer {
	b.t.Helper()
	return b.once(path, func(a *answer) bool { return !strings.Contains(a.words(), "is being added up") })
}

func TestUsageIsShownByEachGroupWithItsExactSum(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := w.sample() // which charges 1.25 as llm.call and holds 2, which is not spent
	other := w.newAgent("other")
	session := w.newSession(other, nil)
	w.asAdmin("POST", "/v1/sessions/"+session+"/actions", map[string]any{"value_usd": 0.000001})
	b := w.as(t, viewer)
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
		page := b.report(query(usagePath, "group_by", groupBy)).want(http.StatusOK).says("Spent $1.250001", "Actions 3").says(want...)
		if got := fieldsOf(page.formNode(usagePath, "get")).Get("group_by"); groupBy != "" && got != groupBy {
			t.Errorf("by %s the form has %s", groupBy, got)
		}
	}
	b.report(query(usagePath, "agent", other)).says("Spent $0.000001").saysNot("$1.25")
	b.report(query(usagePath, "from", "2020-01-01", "to", "2020-12-31")).want(http.StatusOK).says("Spent $0.00", "Nothing was used on these days")
}

func TestAReportOfTooManyDaysOrOfAnUnknownAgentIsRefused(t *testing.T) {
	t.Parallel()
	_, b := visited(t, viewer)
	b.report(query(usagePath, "from", "2020-01-01", "to", "2026-01-01")).want(http.StatusBadRequest).says("at most 399 days")
	b.report(query(usagePath, "agent", uuid.NewString())).want(http.StatusNotFound)
}

func TestAnExportHasTheBytesOfTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.sampleOf(texts{"scout", "more", `=HYPERLINK("https://evil.example","x"),;+1`, "s", "m"})
	b := w.as(t, viewer)
	for _, format := range []string{"csv", "json"} {
		page := b.report(query(usagePath, "group_by", "day,action_type"))
		got := b.get(page.way("Export as " + strings.ToUpper(format))).want(http.StatusOK)
		today := dayOf(time.Now())
		from := dayOf(time.Now().AddDate(0, 0, -29))
		want := `attachment; filename="remit-usage-` + from + "-" + today + "-by-day-action_type." + format + `"`
		if disposition := got.header.Get("Content-Disposition"); disposition != want {
			t.Errorf("it is %s, want %s", disposition, want)
		}
		program := w.browser(t)
		program.headers["X-API-Key"] = w.keys[viewer]
		ofAPI := program.get(query("/v1/usage", "group_by", "day,action_type", "format", format))
		if ofAPI.text != got.text || ofAPI.header.Get("Content-Type") != got.header.Get("Content-Type") {
			t.Errorf("%s, want %s", got.text, ofAPI.text)
		}
	}
	refused := b.get(query(usagePath+"/export", "from", "2026-02-31\r\nX: y")).want(http.StatusBadRequest)
	if refused.header.Get("Content-Disposition") != "" || refused.page == nil {
		t.Errorf("a refusal is a file: %v", refused.header)
	}
	if got := w.browser(t).get(usagePath + "/export"); got.status != http.StatusSeeOther {
		t.Errorf("without a sign-in: %d", got.status)
	}
}

// linesOf returns a report of so many agents, one of them twice as dear as the one before.
func linesOf(agents int) []usageLine {
	lines := make([]usageLine, agents)
	for i := range lines {
		lines[i] = usageLine{AgentID: fmt.Sprintf("01a20000-0000-7000-8000-%012d", i), ActionType: new("x"), ActionCount: 1, Value: amount(i)}
	}
	return lines
}

func TestAReportTakesLittleMemoryAndWithoutRoomOnlyItsFirstPage(t *testing.T) {
	t.Parallel()
	f := newFleets(4<<20, func(string) {})
	u := newUsageReports(f.pool, func(string) {})
	organization := uuid.New()
	keep := func(lines int) *usageReport {
		r := &usageReport{of: usageOf{organization: organization, agent: uuid.NewString()}, idle: time.AfterFunc(time.Hour, func() {})}
		u.known[r.of] = r
		u.keep(r, usageTableOf(linesOf(lines), time.Now()))
		return r
	}
	first, second, third := keep(10_000), keep(10_000), keep(10_000)
	if n := f.pool.Reserved(); n == 0 || n > 2<<20 {
		t.Errorf("%d bytes are reserved", n)
	}
	for _, r := range []*usageReport{first, second, third} {
		table := r.last.Load()
		if table.Lines != 10_000 || table.Value != 9_999*10_000/2 || table.rows[0].value != 9_999 || table.Cut != (len(table.rows) == usagePerPage) {
			t.Errorf("%d lines, %d rows, %d in all", table.Lines, len(table.rows), table.Value)
		}
	}
	if first.last.Load().Cut || !third.last.Load().Cut {
		t.Error("the third has room, or the first has none")
	}
	for _, r := range []*usageReport{first, second, third} {
		u.drop(r)
	}
	if n := f.pool.Reserved(); n != 0 || len(u.known) != 0 {
		t.Errorf("%d bytes are reserved after all are dropped", n)
	}
}

func TestReportsThatAreKeptAreBounded(t *testing.T) {
	t.Parallel()
	u := newUsageReports(newFleets(1<<20, func(string) {}).pool, func(string) {})
	organization, now := uuid.New(), time.Now()
	add := func(organization uuid.UUID, reading chan struct{}) bool {
		if !u.makeRoom(organization) {
			return false
		}
		now = now.Add(time.Second)
		r := &usageReport{of: usageOf{organization: organization, agent: uuid.NewString()}, idle: time.AfterFunc(time.Hour, func() {}), used: now, reading: reading}
		u.known[r.of] = r
		return true
	}
	for range 2 * mostOwnReports {
		add(organization, nil)
	}
	if len(u.known) != mostOwnReports {
		t.Errorf("%d of an organization", len(u.known))
	}
	for range 2 * mostReports {
		add(uuid.New(), nil)
	}
	if len(u.known) != mostReports {
		t.Errorf("%d of all", len(u.known))
	}
	for range mostReports {
		add(uuid.New(), make(chan struct{}))
	}
	if add(uuid.New(), nil) {
		t.Error("one makes room that is being read")
	}
}

func TestAReportIsPagedWithoutBeingReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	one := w.asking("one")
	for n := range 2*usagePerPage + 1 {
		w.asAdmin("POST", "/v1/sessions/"+w.newSession(one.id, nil)+"/actions", map[string]any{"value_usd": float64(n) / 10})
	}
	b := w.as(t, viewer)
	path := usagePath + "?group_by=session"
	page := b.report(path).want(http.StatusOK).says("101 lines", "$505.00", "1.9 %")
	for range 2 {
		page = b.get(page.way("Next page")).want(http.StatusOK)
	}
	if rows := page.rows("Session"); len(rows) != 1 || page.way("Next page") != "" {
		t.Errorf("the third page has %d rows", len(rows))
	}
	b.leadsBack(path, "Session")
	b.get(path + "&page=9").want(http.StatusOK).says("The report ends before this page")
}

func TestTwoAgentsOfOneNameAreDrawnApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	for i := range 2 {
		w.asAdmin("POST", "/v1/sessions/"+w.newSession(w.newAgent("twin"), nil)+"/actions", map[string]any{"value_usd": i + 1})
	}
	page := w.as(t, viewer).report(usagePath + "?group_by=day,agent").want(http.StatusOK)
	var sums []string
	for node := range page.elements("span") {
		if attribute(node, "class") == "chart-figure" {
			sums = append(sums, textOf(node))
		}
	}
	if !slices.Equal(sums, []string{"$2.00", "$1.00"}) {
		t.Errorf("the legend has %v", sums)
	}
}

func TestALongReportIsWaitedForAndThenShown(t *testing.T) {
	t.Parallel()
	w, b, _ := sampled(t, viewer)
	for range usageTurns { // other organizations' reports
		w.console.reports.turns <- struct{}{}
	}
	waits := b.get(usagePath).want(http.StatusOK).says("is being added up")
	if !strings.Contains(waits.text, "data-again>") {
		t.Error("the script is not asked to look again")
	}
	for range usageTurns {
		<-w.console.reports.turns
	}
	b.report(usagePath).want(http.StatusOK).says("Spent $1.25")
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
	w := newWorld(t, settings{})
	made := w.asAdmin(http.MethodPost, "/v1/sessions", map[string]any{"agent_id": w.sample()["agent"], "max_actions": 100})
	for i := range 30 {
		w.asAdmin(http.MethodPost, "/v1/sessions/"+made["id"].(string)+"/actions", map[string]any{"value_usd": 0.01, "action_type": "type" + strconv.Itoa(i)})
	}
	w.as(t, viewer).report(query(usagePath, "group_by", "action_type")).says("type29", "others").saysNot("(no name)")
}

func TestSharesAreExactToATenthOfAPercent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		part, whole money.MicroUSD
		want        string
	}{
		{1, 3, "33.3 %"}, {3, 3, "100.0 %"}, {1, 1_000_000, "< 0.1 %"}, {0, 5, "0.0 %"}, {-1, 5, "–"}, {1, 0, "–"}, {5, -5, "–"},
	} {
		if got := shareText(int64(test.part), int64(test.whole)); got != test.want {
			t.Errorf("%d of %d is %s, want %s", test.part, test.whole, got, test.want)
		}
	}
}

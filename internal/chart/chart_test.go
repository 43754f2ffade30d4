package chart

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remit/test/suite"
)

var update = flag.Bool("update", false, "write testdata/*.html anew")

// samples are one of each drawing, small enough to read.
func samples() map[string]template.HTML {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	return map[string]template.HTML{
		"days": Days{Title: "Spent by agent", Unit: MicroUSD, From: 20_777, To: 20_779, Entries: []Entry{
			{20_777, "planner", 1_500_000}, {20_777, "<script>", 250_001}, {20_779, "planner", 2_000_000},
			{20_779, "<script>", -30_000}, {20_776, "planner", 9_000_000},
		}}.HTML(),
		"ranked": Ranked{Title: "Refusals", Names: "Limit", Value: "Refused", Rows: []Row{
			{"max_actions", "", 12}, {"max_value_usd", "/console/sessions?limit=max_value_usd&sort=x", 1_234},
		}}.HTML(),
		"usage":    Usage{Label: "Value", Unit: MicroUSD, Used: 3_200_000, Held: 1_000_000, Delegated: 500_000, Limit: 10_000_000}.SVG(),
		"lifetime": Lifetime{Label: "Time", Start: noon, End: noon.Add(time.Hour), Now: noon.Add(45*time.Minute + time.Second)}.SVG(),
	}
}

func TestEveryDrawingIsWrittenAsBefore(t *testing.T) {
	t.Parallel()
	for name, got := range samples() {
		requireSafe(t, string(got))
		file := filepath.Join("testdata", name+".html")
		text := strings.ReplaceAll(string(got), "><", ">\n<") + "\n"
		if *update {
			suite.Must(0, os.WriteFile(file, []byte(text), 0o600))(t)
		}
		if want, err := os.ReadFile(file); err != nil || text != string(want) {
			t.Errorf("%s is now (go test ./internal/chart -update writes it, %v):\n%s", file, err, text)
		}
	}
}

// tokens parses a fragment, which must be well-formed.
func tokens(t *testing.T, fragment string) iter.Seq[xml.Token] {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader("<p>" + fragment + "</p>"))
	decoder.Entity = xml.HTMLEntity
	return func(yield func(xml.Token) bool) {
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatalf("not well-formed: %v\n%s", err, fragment)
			}
			if !yield(token) {
				return
			}
		}
	}
}

// requireSafe checks that a fragment is well-formed, has only elements and attributes that a strict policy allows, and that an SVG
// is an image for screen readers, or nothing. It returns the text between the elements.
func requireSafe(t *testing.T, fragment string) (texts string) {
	t.Helper()
	allowed := " a bdi caption desc details div figcaption figure g li line polyline rect region span summary svg table tbody td text tfoot th thead title tr ul "
	attributes := " aria-hidden aria-label class dy height href points role rx scope tabindex viewBox width x x1 x2 y y1 y2 "
	for token := range tokens(t, fragment) {
		switch token := token.(type) {
		case xml.CharData:
			texts += string(token) + "\n"
		case xml.StartElement:
			if !strings.Contains(allowed+"p ", " "+token.Name.Local+" ") {
				t.Errorf("element %s", token.Name.Local)
			}
			hasRole := token.Name.Local != "svg"
			for _, a := range token.Attr {
				hasRole = hasRole || a.Name.Local == "role" && a.Value == "img" || a.Name.Local == "aria-hidden" && a.Value == "true"
				if !strings.Contains(attributes, " "+a.Name.Local+" ") || a.Name.Local == "href" && !strings.HasPrefix(a.Value, "/") {
					t.Errorf("attribute %s=%q", a.Name.Local, a.Value)
				}
			}
			if !hasRole {
				t.Error("an svg has neither role=img nor aria-hidden")
			}
		}
	}
	return texts
}

func TestValuesAreWrittenExactly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		unit  Unit
		value int64
		want  string
	}{
		{MicroUSD, 0, "$0.00"},
		{MicroUSD, 1, "$0.000001"},
		{MicroUSD, 12_300_000, "$12.30"},
		{MicroUSD, 1_234_567_000_010, "$1,234,567.00001"},
		{MicroUSD, -30_000, "−$0.03"},
		{MicroUSD, 1_000_000_000 * perDollar, "$1,000,000,000.00"},
		{MicroUSD, math.MaxInt64, "$9,223,372,036,854.775807"},
		{MicroUSD, math.MinInt64, "−$9,223,372,036,854.775808"},
		{Count, 999, "999"},
		{Count, 1_000, "1,000"},
		{Count, -123_456_789, "−123,456,789"},
		{Count, math.MinInt64, "−9,223,372,036,854,775,808"},
	} {
		wantEqual(t, fmt.Sprint(tc.value), tc.unit.Text(tc.value), tc.want)
	}
}

func TestTicksAreRoundAndIncludeAllValues(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		unit        Unit
		least, most int64
		want        string
	}{
		{MicroUSD, 0, 0, "$0 $1"},
		{MicroUSD, 0, 3, "$0.000000 $0.000001 $0.000002 $0.000003"},
		{MicroUSD, 0, 420_000, "$0.00 $0.10 $0.20 $0.30 $0.40 $0.50"},
		{MicroUSD, 0, 1_000_000, "$0.00 $0.20 $0.40 $0.60 $0.80 $1.00"},
		{MicroUSD, 0, 1_000_001, "$0.00 $0.50 $1.00 $1.50"},
		{MicroUSD, 0, 5_000_001, "$0 $2 $4 $6"},
		{MicroUSD, 0, 2_100 * perDollar, "$0 $500 $1k $1.5k $2k $2.5k"},
		{MicroUSD, -1_500_000, 5_000_000, "−$2 $0 $2 $4 $6"},
		{MicroUSD, -9, 0, "−$0.000010 −$0.000008 −$0.000006 −$0.000004 −$0.000002 $0.000000"},
		{Count, 0, 0, "0 1"},
		{Count, 0, 12, "0 5 10 15"},
		{Count, 0, 73_000, "0 20k 40k 60k 80k"},
		{Count, 0, 1_400_000_000, "0 500M 1B 1.5B"},
	} {
		a := newAxis(tc.unit, tc.least, tc.most)
		var labels []string
		for _, tick := range a.ticks() {
			labels = append(labels, a.label(tick))
		}
		wantEqual(t, fmt.Sprintf("%d to %d", tc.least, tc.most), strings.Join(labels, " "), tc.want)
	}
}

func TestTheLargestNumbersHaveAnAxis(t *testing.T) {
	t.Parallel()
	for _, ends := range [][2]int64{{math.MinInt64, math.MaxInt64}, {math.MinInt64, 0}, {0, math.MaxInt64}} {
		a := newAxis(MicroUSD, ends[0], ends[1])
		if ticks := a.ticks(); len(ticks) < 2 || len(ticks) > 2*ticksWanted {
			t.Errorf("%v: ticks %v", ends, ticks)
		}
		if top, bottom := a.y(ends[1], 180), a.y(ends[0], 180); top > bottom || bottom > 180_00 {
			t.Errorf("%v lie at %d and %d", ends, top, bottom)
		}
	}
}

func TestSeriesAreBoundedAndSumsStayExact(t *testing.T) {
	t.Parallel()
	var entries []Entry
	sum := int64(0)
	for day := range 30 {
		for agent := range 100 {
			value := int64(1 + day*agent)
			entries = append(entries, Entry{day, fmt.Sprint(agent, strings.Repeat("long name ", 1000)), value})
			sum += value
		}
	}
	days := Days{Title: "t", Unit: MicroUSD, To: 29, Entries: entries}
	drawn, s := string(days.HTML()), days.stack()
	if s.bars != 30 || len(s.series) != mostSeries || s.series[mostSeries-1].name != "93 others" {
		t.Errorf("%d bars, %d series, the last is %s", s.bars, len(s.series), s.series[len(s.series)-1].name)
	}
	if got := s.sum(); got != sum || !strings.Contains(drawn, "<td>"+Dollars(sum)+"</td></tr></tfoot>") {
		t.Errorf("the sum is %d, want %d", got, sum)
	}
	if len(drawn) > 100_000 {
		t.Errorf("%d bytes", len(drawn))
	}
}

func TestTheOrderOfEntriesChangesNothing(t *testing.T) {
	t.Parallel()
	entries := []Entry{{0, "same", 1}, {0, "other", 1}, {1, "x", 2}, {0, "a", 2}}
	backwards := []Entry{entries[3], entries[2], entries[1], entries[0]}
	wantEqual(t, "drawn backwards", (Days{To: 1, Entries: backwards}).HTML(), (Days{To: 1, Entries: entries}).HTML())
}

func TestNothingSpentIsDrawnToo(t *testing.T) {
	t.Parallel()
	texts := requireSafe(t, string(Days{Title: "Spent", Unit: MicroUSD, From: 1, To: 30}.HTML()))
	if !strings.Contains(texts, "$0.00 in all.") {
		t.Error(texts)
	}
	requireSafe(t, string(Ranked{Title: "t"}.HTML()))
	requireSafe(t, string(Usage{Label: "u"}.SVG()))
	requireSafe(t, string(Lifetime{}.SVG()))
}

func TestUsageSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		usage Usage
		want  []string
	}{
		{Usage{Label: "Actions", Used: 3, Limit: 10}, []string{"Actions: 3 used of 10", "7 left.", `class="chart-used" x="0%" width="30%"`}},
		{Usage{Label: "V", Used: 1, Held: 1, Delegated: 1, Limit: 3}, []string{"1 used, 1 held, 1 delegated of 3", "0 left.", `class="chart-delegated" x="66.66%" width="33.33%"`}},
		{Usage{Label: "V", Used: 15, Limit: 10}, []string{"15 used of 10", "5 beyond the limit.", `class="chart-used" x="0%" width="100%"`, `class="chart-limit" x1="66.66%"`}},
		{Usage{Label: "V", Used: 7, Over: 5, Limit: 10}, []string{"7 used of 10, 5 beyond", "3 left.", `class="chart-usage chart-full"`}},
		{Usage{Label: "V", Used: math.MaxInt64, Held: math.MaxInt64, Limit: 1}, []string{"9,223,372,036,854,775,806 beyond the limit."}},
	} {
		drawn := string(tc.usage.SVG())
		requireSafe(t, drawn)
		for _, want := range tc.want {
			if !strings.Contains(drawn, want) {
				t.Errorf("%+v lacks %s: %s", tc.usage, want, drawn)
			}
		}
	}
}

func TestALifetimeSaysHowMuchIsLeft(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for passed, want := range map[time.Duration][2]string{
		-time.Hour:                              {"2 h left of 1 h", `width="0%"`},
		0:                                       {"1 h left of 1 h", `width="0%"`},
		20 * time.Minute:                        {"40 min left of 1 h", `width="33.33%"`},
		3599*time.Second + 500*time.Millisecond: {"0 s left of 1 h", `width="99.98%"`},
		time.Hour:                               {"over", `width="100%"`},
		48 * time.Hour:                          {"over", `width="100%"`},
	} {
		drawn := string(Lifetime{Label: "Time", Start: start, End: start.Add(time.Hour), Now: start.Add(passed)}.SVG())
		if !strings.Contains(drawn, want[0]) || !strings.Contains(drawn, `chart-elapsed" `+want[1]) {
			t.Errorf("after %v: %s", passed, drawn)
		}
	}
}

func TestDurationsHaveTwoUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 999 * time.Millisecond: "0 s", 59 * time.Second: "59 s", 5*time.Minute + 10*time.Second: "5 min 10 s",
		time.Hour + 59*time.Second: "1 h", 51 * time.Hour: "2 d 3 h", 24 * 400 * time.Hour: "400 d",
	} {
		wantEqual(t, d.String(), Duration(d), want)
	}
}

func TestOnlyPathsOfTheSameOriginAreLinks(t *testing.T) {
	t.Parallel()
	for link, is := range map[string]bool{
		"/console/agents/1?a=b&c=d": true, "": false, "//evil.example": false, `/\evil.example`: false, "/\t/evil.example": false, "/\x80": false, "javascript:alert(1)": false, "https://evil.example": false,
	} {
		drawn := string(Ranked{Rows: []Row{{"n", link, 1}}}.HTML())
		wantEqual(t, link+" in "+drawn, strings.Contains(drawn, "<a "), is)
	}
}

func TestALongRankingEndsWithAllOthers(t *testing.T) {
	t.Parallel()
	var rows []Row
	for i := range 1_000 {
		rows = append(rows, Row{Name: fmt.Sprint("agent ", i), Value: int64(i)})
	}
	drawn := string(Ranked{Rows: rows}.HTML())
	if n := strings.Count(drawn, "<tr>") - 1; n != mostRows || !strings.Contains(drawn, "981 others") || !strings.Contains(drawn, ">"+grouped(980*981/2)+"<") {
		t.Errorf("%d rows: %s", n, drawn)
	}
}

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

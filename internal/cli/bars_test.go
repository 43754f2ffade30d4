package cli

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"remit/client"
	"remit/money"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// sessionAt is a session of an hour that began at noon.
func sessionAt(status string, actions, limit int64, used, held, over, most money.MicroUSD) client.SessionInfo {
	return client.SessionInfo{
		ID: "01a1fd30-717a-7969-8ec8-e3757bbb6c57", Status: status, ActionCount: actions, MaxActions: limit,
		ValueUsed: used, ValueHeld: held, ValueOverage: over, MaxValue: most, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour),
	}
}

func textOf(drawing []line) string {
	var text strings.Builder
	for _, l := range drawing {
		text.WriteString(l.text(false) + "\n")
	}
	return text.String()
}

func TestADrawingIsAsWideAsTheTerminal(t *testing.T) {
	t.Parallel()
	half := seen[client.SessionInfo]{value: sessionAt("active", 5, 10, money.USD/2, money.USD/4, 0, money.USD), now: noon.Add(15 * time.Minute)}
	fresh := seen[client.SessionInfo]{value: sessionAt("active", 0, 1000, 0, 0, 0, 100*money.USD), now: noon}
	spent := seen[client.SessionInfo]{value: sessionAt("active", 10, 10, money.USD, 0, money.USD/5, money.USD), now: noon.Add(59*time.Minute + 59*time.Second)}
	ended := seen[client.SessionInfo]{value: sessionAt("completed", 1, 3, 1, 0, 0, 3), now: noon.Add(50 * time.Minute)}
	ended.value.EndedAt = noon.Add(30 * time.Minute)
	away := half
	away.away = "since 12:15:00: no response from http://127.0.0.1:8080: connect: connection refused"
	nothing := seen[client.SessionInfo]{value: sessionAt("expired", 0, 1, 0, 0, 0, 0), now: noon.Add(2 * time.Hour)}
	for name, c := range map[string]struct {
		view  seen[client.SessionInfo]
		style style
		want  string
	}{
		"80, half and held": {half, style{width: 80, unicode: true}, `
active  session 01a1fd30-717a-7969-8ec8-e3757bbb6c57
actions  █████████████████░░░░░░░░░░░░░░░░░  50%  5 used of 10
value    █████████████████▒▒▒▒▒▒▒▒░░░░░░░░░  75%  0.5 used + 0.25 held of 1 USD
time     ████████░░░░░░░░░░░░░░░░░░░░░░░░░░  25%  45m0s left of 1h0m0s
`},
		"20": {half, style{width: 20, unicode: true}, `
active  session 01a
actions  ███░░░ 50%
value    ███▒░░ 75%
time     █░░░░░ 25%
`},
		"50, short words": {half, style{width: 50, unicode: true}, `
active  session 01a1fd30-717a-7969-8ec8-e3757bbb6
actions  ███████████░░░░░░░░░░░░  50%  5/10
value    ███████████▒▒▒▒▒▒░░░░░░  75%  0.5+0.25/1
time     █████░░░░░░░░░░░░░░░░░░  25%  45m0s
`},
		"5": {half, style{width: 5, unicode: true}, "\nacti\nacti\nvalu\ntime\n"},
		"80, nothing used": {fresh, style{width: 80}, `
active  session 01a1fd30-717a-7969-8ec8-e3757bbb6c57
actions  ..........................................   0%  0 used of 1000
value    ..........................................   0%  0 used of 100 USD
time     ..........................................   0%  1h0m0s left of 1h0m0s
`},
		"80, all used and beyond": {spent, style{width: 80}, `
active  session 01a1fd30-717a-7969-8ec8-e3757bbb6c57
actions  #################################### 100%  10 used of 10
value    #################################### 120%  1 used of 1 USD, 0.2 beyond
time     ###################################.  99%  1s left of 1h0m0s
`},
		"80, ended": {ended, style{width: 80}, `
completed  session 01a1fd30-717a-7969-8ec8-e3757bbb6c57
actions  ###########.......................  33%  1 used of 3
value    ###########.......................  33%  0.000001 used of 0.000003 USD
time     #################.................  50%  over after 30m0s
`},
		"80, a budget of nothing": {nothing, style{width: 80}, `
expired  session 01a1fd30-717a-7969-8ec8-e3757bbb6c57
actions  ..............................................   0%  0 used of 1
value    ############################################## 100%  0 used of 0 USD
time     ############################################## 100%  over after 1h0m0s
`},
		"80, the service is away": {away, style{width: 80}, `
active  session 01a1fd30-717a-7969-8ec8-e3757bbb6c57
actions  #################.................  50%  5 used of 10
value    #################========.........  75%  0.5 used + 0.25 held of 1 USD
time     ########..........................  25%  45m0s left of 1h0m0s
since 12:15:00: no response from http://127.0.0.1:8080: connect: connection ref
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := "\n" + textOf(drawSession(c.view, c.style)); got != c.want {
				t.Errorf("draws%s\nwant%s", got, c.want)
			}
		})
	}
}

// A line that fills the last column would wrap, and the next drawing would land a row too low.
func TestNoLineReachesTheLastColumn(t *testing.T) {
	t.Parallel()
	v := seen[client.SessionInfo]{value: sessionAt("active", 1e9, 1e9, money.Max, 0, money.Max, money.Max), now: noon, away: strings.Repeat("away ", 99)}
	for width := 1; width < 300; width++ {
		for _, l := range drawSession(v, style{width: width, unicode: true}) {
			if text := l.text(false); l.columns() > max(width-1, 1) || utf8.RuneCountInString(text) != l.columns() {
				t.Fatalf("of %d columns: %q", width, text)
			}
		}
	}
}

func TestBarsAreDrawnForAnyNumbers(t *testing.T) {
	t.Parallel()
	extremes := []int64{math.MinInt64, -5, 0, 1, 10, math.MaxInt64}
	for _, used := range extremes {
		for _, held := range extremes {
			for _, limit := range extremes {
				g := gauge{used: used, held: held, over: held, limit: limit, words: [2]string{"w", "w"}}
				full, kept := g.cells(40)
				if full < 0 || kept < 0 || full+kept > 40 || g.percent() < 0 {
					t.Errorf("%d used and %d held of %d: %d and %d cells of 40, %d%%", used, held, limit, full, kept, g.percent())
				}
			}
		}
	}
	long := sessionAt("active", -5, 4, math.MinInt64, math.MaxInt64, math.MaxInt64, 1)
	long.CreatedAt, long.ExpiresAt = noon, noon.AddDate(4, 0, 0)
	v := seen[client.SessionInfo]{value: long, now: noon.AddDate(2, 0, 0)}
	for _, width := range []int{1, 20, 80, 300} {
		drawSession(v, style{width: width})
	}
	if used, held := lifetimeOf(v.value, v.now).cells(300); used != 150 || held != 0 || lifetimeOf(v.value, v.now).percent() != 50 { // 731 days of 1461
		t.Errorf("half of four years is %d and %d cells of 300, %d%%", used, held, lifetimeOf(v.value, v.now).percent())
	}
}

func TestColoursShowHowFullABarIs(t *testing.T) {
	t.Parallel()
	for used, want := range map[int64]colour{0: green, 79: green, 80: yellow, 99: yellow, 100: red} {
		wantEqual(t, fmt.Sprintf("%d of 100", used), (gauge{used: used, limit: 100}).colour(), want)
	}
	wantEqual(t, "with what is held", (gauge{used: 50, held: 30, limit: 100}).colour(), yellow)
	v := seen[client.SessionInfo]{value: sessionAt("active", 8, 10, 1, 0, 0, 10), now: noon}
	escapes := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for _, l := range drawSession(v, style{width: 80}) {
		bright, sober := l.text(true), l.text(false)
		if escapes.MatchString(sober) || !escapes.MatchString(bright) || escapes.ReplaceAllString(bright, "") != sober {
			t.Errorf("%q and %q", bright, sober)
		}
	}
}

func TestTheLocaleChoosesTheCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{"LANG": "en_GB.UTF-8"}, true},
		{map[string]string{"LANG": "C.utf8"}, true},
		{map[string]string{"LANG": "de_DE.ISO-8859-1"}, false},
		{map[string]string{"LANG": "en_GB.UTF-8", "LC_ALL": "C"}, false},
		{map[string]string{"LANG": "C", "LC_CTYPE": "UTF-8"}, true},
		{map[string]string{}, false},
	} {
		wantEqual(t, fmt.Sprint(c.env), isUnicode(func(name string) string { return c.env[name] }), c.want)
	}
}

func TestADrawingReplacesAPreviousOneThatWrapped(t *testing.T) {
	t.Parallel()
	wide := []line{{{strings.Repeat("x", 79), plain}}, {{"short", plain}}}
	narrow := []line{{{"y", plain}}}
	for width, up := range map[int]string{80: "\x1b[2A", 79: "\x1b[2A", 78: "\x1b[3A", 20: "\x1b[5A"} {
		want := hideCursor + "\r" + up + "y" + eraseOfLine + "\r\n" + eraseToEnd
		wantEqual(t, fmt.Sprintf("at %d columns", width), redraw(wide, narrow, style{width: width}), want)
	}
	if got := redraw(nil, narrow, style{width: 80}); strings.Contains(got, "A") {
		t.Errorf("the first drawing moves up: %q", got)
	}
}

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

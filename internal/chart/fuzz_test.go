package chart

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzHostileNames draws everything with a stranger's text and numbers: nothing of it may be more than text.
func FuzzHostileNames(f *testing.F) {
	for _, seed := range []string{
		"", "planner", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "'", "]]>", "<!--", "&lt;", "\x00\xff", "\u202egnp.exe", "\u2066", "\ufffe",
		"=1+1", "a\nb\tc", strings.Repeat("x", 10_000), strings.Repeat("é", 300), "javascript:alert(1)", "//evil.example", "/\tx",
	} {
		f.Add(seed, int64(1), int64(-1), 3)
	}
	f.Add("a", int64(1<<63-1), int64(-1<<63), 100)
	f.Fuzz(func(t *testing.T, text string, a, b int64, days int) {
		days &= 511
		for _, unit := range []Unit{Count, MicroUSD} {
			entries := []Entry{{0, text, a}, {days, text + "2", b}, {days / 2, text, a}, {0, "x", b}}
			drawn := string(Days{text, unit, 0, days, entries}.HTML()) + string(Ranked{text, text, text, unit, []Row{{text, text, a}, {"n", "/n", b}}}.HTML()) +
				string(Usage{text, unit, a, b, a, b, a}.SVG()) +
				string(Lifetime{text, time.Unix(a, 0), time.Unix(b, 0), time.Unix(0, a), time.Unix(0, b)}.SVG())
			if !utf8.ValidString(drawn) {
				t.Error("not UTF-8")
			}
			requireSafe(t, drawn)
		}
		if shown := cut(text, longestName); utf8.RuneCountInString(shown) > longestName+1 {
			t.Errorf("%q is too long", shown)
		}
	})
}

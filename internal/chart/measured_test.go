package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"remit/test/suite"
)

// textsOf parses a drawing as XML and returns its texts, the title first.
func textsOf(t *testing.T, svg []byte) []string {
	t.Helper()
	if !bytes.HasPrefix(svg, []byte("<svg ")) {
		t.Fatalf("starts with %.40q, which is invalid in a page", svg)
	}
	var found []string
	for token := range tokens(t, string(svg)) {
		if text, is := token.(xml.CharData); is {
			found = append(found, string(text))
		}
	}
	return found
}

func TestEveryTextIsShownEscapedAndFitForXML(t *testing.T) {
	t.Parallel()
	up, down := []float64{0, 1}, []float64{2, 1}
	escaped := suite.Must(Lines(Labels{Title: `a < b & "c"`, X: "<x>", Y: "y & z"},
		Series{`<script>alert(1)</script>`, up, up}, Series{"second", up, down}))(t)
	fit := suite.Must(Lines(Labels{Title: "two\nlines\x00\xff"}, Series{"bell\a", up, up}))(t)
	bars := suite.Must(Bars(Labels{Title: "ratios", X: "times"}, Bar{"a & b", 0.5, 0.8}, Bar{"none", 0, 0}, Bar{"large", 2, 0}))(t)
	for _, tc := range []struct {
		svg  []byte
		want []string // the title first
	}{
		{escaped, []string{`a < b & "c"`, "<x>", "y & z", `<script>alert(1)</script>`, "second", "0", "1", "2"}},
		{fit, []string{"two lines", "bell"}},
		{bars, []string{"ratios", "a & b", "0.5 (goal 0.8)", "none", "large", "goal", "times"}},
	} {
		shown := textsOf(t, tc.svg)
		for _, want := range tc.want {
			if !slices.Contains(shown, want) || shown[0] != tc.want[0] {
				t.Errorf("%q is not among %q", want, shown)
			}
		}
	}
}

func TestTextIsCutWhereItDoesNotFit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 100)
	svg := suite.Must(Bars(Labels{Title: long}, Bar{long, 1, 0}))(t)
	for _, text := range textsOf(t, svg)[1:] {
		if len(text) > 120 {
			t.Errorf("not cut: %q", text)
		}
	}
}

func TestNothingToDrawIsAnError(t *testing.T) {
	t.Parallel()
	nan, one := math.NaN(), []float64{1}
	for name, draw := range map[string]func() ([]byte, error){
		"no series":         func() ([]byte, error) { return Lines(Labels{}) },
		"no points":         func() ([]byte, error) { return Lines(Labels{}, Series{Name: "a"}) },
		"only NaN":          func() ([]byte, error) { return Lines(Labels{}, Series{"a", one, []float64{nan}}) },
		"only infinite":     func() ([]byte, error) { return Lines(Labels{}, Series{"a", []float64{math.Inf(1)}, one}) },
		"zero on log scale": func() ([]byte, error) { return Lines(Labels{LogY: true}, Series{"a", one, []float64{0}}) },
		"no bars":           func() ([]byte, error) { return Bars(Labels{}) },
	} {
		if svg, err := draw(); !errors.Is(err, ErrNothing) || svg != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatCannotBeABarIsAnError(t *testing.T) {
	t.Parallel()
	for _, b := range []Bar{{"a", math.NaN(), 0}, {"a", math.Inf(1), 0}, {"a", -1, 0}, {"a", 1, math.NaN()}, {"a", 1, -1}} {
		if _, err := Bars(Labels{}, b); err == nil {
			t.Errorf("%v is drawn", b)
		}
	}
	if _, err := Lines(Labels{}, Series{"a", []float64{1, 2}, []float64{1}}); err == nil {
		t.Error("a series of uneven lengths is drawn")
	}
}

func TestOddValuesAreDrawn(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for name, s := range map[string]Series{
		"one point":        {"a", []float64{3}, []float64{3}},
		"all the same":     {"a", []float64{1, 2}, []float64{7, 7}},
		"all zero":         {"a", []float64{0, 0}, []float64{0, 0}},
		"below zero":       {"a", []float64{-2, -1}, []float64{-5, -1}},
		"gaps":             {"a", []float64{1, 2, 3, 4}, []float64{1, nan, math.Inf(1), 2}},
		"far apart":        {"a", []float64{1e-9, 1e12}, []float64{1e-9, 1e15}},
		"close together":   {"a", []float64{1, 1.000001}, []float64{5, 5.000001}},
		"as large as goes": {"a", []float64{1, 1e300}, []float64{1, 1e300}},
	} {
		for _, l := range []Labels{{}, {LogX: true, LogY: true}} {
			svg, err := Lines(l, s)
			if l.LogX && (name == "all zero" || name == "below zero") {
				continue // not valid there
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			textsOf(t, svg)
			if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
				t.Errorf("%s: a coordinate is no number", name)
			}
			if n := bytes.Count(svg, []byte("<text")); n > 40 {
				t.Errorf("%s: %d texts", name, n)
			}
		}
	}
}

func TestNumbersAreShort(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]float64{
		"0": 0, "1": 1, "0.845": 0.84512, "12.3": 12.34, "999": 999, "1k": 1000, "1.5k": 1500, "52k": 52000, "1.3M": 1.3e6,
		"2G": 2e9, "0.001": 0.001, "0.3": 0.1 + 0.2,
	} {
		wantEqual(t, fmt.Sprint(v), number(v), want)
	}
}

func TestManySeriesDifferInColourOrStroke(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range len(palette) * len(dashes) {
		style := strokeOf(i)
		key := style.colour + style.dashes
		if seen[key] {
			t.Errorf("series %d is drawn as another", i)
		}
		seen[key] = true
	}
}

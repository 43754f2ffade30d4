package chart

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"

	"remit/test/suite"
)

// colour is linear RGB, each from 0 to 1.
type colour [3]float64

// theme returns the colours of CSS for light or dark.
func theme(t *testing.T, dark bool) map[string]colour {
	t.Helper()
	light, rest, _ := strings.Cut(CSS, "@media (prefers-color-scheme: dark)")
	text := light
	if dark {
		text, _, _ = strings.Cut(rest, ".chart {")
	}
	colours := map[string]colour{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if c, err := parsed(value); err == nil {
			colours[name] = c
		}
	}
	if len(colours) != 16 {
		t.Fatalf("%d colours: %v", len(colours), colours)
	}
	return colours
}

// parsed returns a colour of six hexadecimal digits.
func parsed(text string) (colour, error) {
	var hex uint32
	_, err := fmt.Sscanf(text, "#%06x", &hex)
	return colour{linear(hex >> 16), linear(hex >> 8 & 255), linear(hex & 255)}, err
}

func TestEveryLineStandsOutFromADarkGround(t *testing.T) {
	t.Parallel()
	least := map[string]float64{ink: 7} // WCAG 2.2, 1.4.6 and 1.4.11
	for _, light := range palette {
		least[light] = 3
	}
	for light, want := range least {
		dark := cmp.Or(onDark[light], light)
		if got := contrast(suite.Must(parsed(dark))(t), suite.Must(parsed(onDark[ground]))(t)); got < want {
			t.Errorf("%s has a contrast of %.2f with the ground, want %v", dark, got, want)
		}
		if !strings.Contains(DarkCSS(), dark) && dark != light {
			t.Errorf("no rule has %s", dark)
		}
	}
}

func linear(channel uint32) float64 {
	c := float64(channel) / 255
	if c <= 0.04045 {
		return c / 12.92
	}
	return math.Pow((c+0.055)/1.055, 2.4)
}

func contrast(a, b colour) float64 {
	luminance := func(c colour) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }
	x, y := luminance(a)+0.05, luminance(b)+0.05
	return max(x, y) / min(x, y)
}

func TestEveryColourStandsOutFromTheGround(t *testing.T) {
	t.Parallel()
	for _, dark := range []bool{false, true} {
		colours := theme(t, dark)
		for name, one := range colours {
			least := 3.0 // WCAG 2.2, 1.4.11
			switch name {
			case "--chart-ground", "--chart-line", "--chart-track", "--chart-near": // nothing depends on seeing these; the last has an edge
				continue
			case "--chart-ink":
				least = 7
			}
			if got := contrast(one, colours["--chart-ground"]); got < least {
				t.Errorf("dark %v: %s has a contrast of %.2f with the ground, want %v", dark, name, got, least)
			}
		}
	}
}

// eyes are those of Machado, Oliveira and Fernandes (2009) for the whole loss of one kind of cone.
var eyes = map[string][3]colour{
	"all cones":    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

func TestColourBlindEyesTellEverySeriesApart(t *testing.T) {
	t.Parallel()
	for _, dark := range []bool{false, true} {
		var before []string
		for i := range mostSeries {
			requireApart(t, dark, property(i), before)
			before = append(before, property(i))
		}
	}
}

// What is used stands out from the track of its bar, and its three colours differ from one another and from what is held.
func TestTheLevelsOfABarDiffer(t *testing.T) {
	t.Parallel()
	for _, dark := range []bool{false, true} {
		colours := theme(t, dark)
		levels := []string{"--chart-1", "--chart-near", "--chart-full"}
		for i, level := range levels {
			requireApart(t, dark, level, append([]string{"--chart-2"}, levels[:i]...))
		}
		for _, edge := range []string{"--chart-1", "--chart-near-edge", "--chart-full"} {
			if got := contrast(colours[edge], colours["--chart-track"]); got < 3 {
				t.Errorf("dark %v: %s has a contrast of %.2f with the track", dark, edge, got)
			}
		}
	}
}

func requireApart(t *testing.T, dark bool, one string, others []string) {
	t.Helper()
	colours := theme(t, dark)
	for name, eye := range eyes {
		for _, other := range others {
			a, b := lab(colours[one], eye), lab(colours[other], eye)
			if got := math.Hypot(math.Hypot(a[0]-b[0], a[1]-b[1]), a[2]-b[2]); got < 14 { // a difference of 2.3 is just seen
				t.Errorf("%s, dark %v: %s and %s are %.1f apart", name, dark, one, other, got)
			}
		}
	}
}

func property(i int) string { return "--" + stack{}.colour(i) }

// lab is CIELAB of what an eye sees of a colour.
func lab(c colour, eye [3]colour) [3]float64 {
	var seen colour
	for i := range seen {
		seen[i] = min(max(eye[i][0]*c[0]+eye[i][1]*c[1]+eye[i][2]*c[2], 0), 1)
	}
	f := func(r, g, b, white float64) float64 {
		v := (r*seen[0] + g*seen[1] + b*seen[2]) / white
		if v > 216.0/24389 {
			return math.Cbrt(v)
		}
		return (24389.0/27*v + 16) / 116
	}
	x, y, z := f(0.4124, 0.3576, 0.1805, 0.95047), f(0.2126, 0.7152, 0.0722, 1), f(0.0193, 0.1192, 0.9505, 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// Every class that a drawing uses has a rule, so none is drawn black by mistake.
func TestEveryClassHasAStyle(t *testing.T) {
	t.Parallel()
	for name, drawn := range samples() {
		for _, after := range strings.Split(string(drawn), `class="`)[1:] {
			classes, _, _ := strings.Cut(after, `"`)
			for class := range strings.FieldsSeq(classes) {
				if !strings.Contains(CSS, "."+class) {
					t.Errorf("%s: class %s has no style", name, class)
				}
			}
		}
	}
}

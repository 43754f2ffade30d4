package chart

import (
	"bytes"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"
)

// Sizes of a drawing of measurements, in pixels unless it is scaled.
const (
	canvasWidth = 760
	lineHeight  = 400 // of a drawing of lines; that of bars depends on their number
	margin      = 14
	titleSize   = 16
	textSize    = 13
	tickSize    = 12
)

// Okabe and Ito's palette without its yellow, which is too light for a thin line.
var (
	palette = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444950"}
	dashes  = [...]string{"", "7 3", "2 2.5", "10 3 2 3"}
)

const (
	ground = "#ffffff"
	ink    = "#22262b"
)

var (
	axisStroke = stroke{colour: "#9aa1a9", width: 1} // also of ticks
	gridStroke = stroke{colour: "#e6e8eb", width: 1}
)

// onDark has the colours of a drawing that are others on a dark ground.
var onDark = map[string]string{
	ground: "#1e2226", ink: "#e6e8ea", gridStroke.colour: "#363c43", palette[0]: "#4ba3dd", palette[len(palette)-1]: "#a7afb7",
}

// DarkCSS returns the rules by which a page shows drawings of measurements on a dark ground.
func DarkCSS() string {
	var rules strings.Builder
	for _, light := range slices.Sorted(maps.Keys(onDark)) {
		fmt.Fprintf(&rules, "svg [fill=%[1]q] { fill: %[2]s; } svg [stroke=%[1]q] { stroke: %[2]s; }\n", light, onDark[light])
	}
	return rules.String()
}

// stroke is how a line is drawn.
type stroke struct {
	colour string
	width  float64
	dashes string
}

// strokeOf returns the stroke of series i. Neighbours differ in colour and in dashes.
func strokeOf(i int) stroke { return stroke{palette[i%len(palette)], 2, dashes[i%len(dashes)]} }

func (s stroke) String() string {
	text := fmt.Sprintf(`stroke="%s" stroke-width="%g" fill="none"`, s.colour, s.width)
	if s.dashes != "" {
		text += ` stroke-dasharray="` + s.dashes + `"`
	}
	return text
}

// canvas collects the elements of a drawing. y grows downwards.
type canvas struct {
	bytes.Buffer
	top float64 // below the title and the legend
}

// entry is an entry of a legend.
type entry struct {
	name   string
	stroke stroke
}

// newCanvas draws the title and the legend, in as many rows as needed.
func newCanvas(title string, legend []entry) *canvas {
	c := &canvas{top: margin}
	if title = line(title); title != "" {
		c.text(margin, c.top+titleSize, "start", titleSize, fit(title, titleSize, canvasWidth-2*margin), `font-weight="bold"`)
		c.top += titleSize + 10
	}
	const sample, gap, between, row = 26, 6, 20, 20
	x, rows := float64(margin), 0
	for _, e := range legend {
		name := fit(line(e.name), textSize, canvasWidth/2)
		if name == "" {
			continue
		}
		needs := sample + gap + widthOf(name, textSize)
		if rows == 0 || x+needs > canvasWidth-margin {
			x, rows = margin, rows+1
		}
		y := c.top + (float64(rows)-0.5)*row
		c.line(e.stroke, x, y, x+sample, y)
		c.text(x+sample+gap, y+textSize*0.35, "start", textSize, name)
		x += needs + between
	}
	if rows > 0 {
		c.top += float64(rows)*row + 8
	}
	return c
}

func (c *canvas) line(s stroke, x1, y1, x2, y2 float64) {
	fmt.Fprintf(c, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %v/>`, x1, y1, x2, y2, s)
}

func (c *canvas) text(x, y float64, anchor string, size float64, text string, more ...string) {
	fmt.Fprintf(c, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%g" fill="%s" %s>%s</text>`,
		x, y, anchor, size, ink, strings.Join(more, " "), html.EscapeString(text))
}

// document returns the drawing as one svg element, with a white ground and a title for screen readers.
func (c *canvas) document(title string, height float64) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f"`+
		` style="max-width:100%%;height:auto" role="img" font-family="Arial,Helvetica,Liberation Sans,sans-serif"><title>%s</title>`+
		`<rect width="100%%" height="100%%" fill="%s"/>`, canvasWidth, height, canvasWidth, height, html.EscapeString(line(title)), ground)
	out.Write(c.Bytes())
	out.WriteString("</svg>")
	return out.Bytes()
}

// line returns text on one line, without characters that are invalid in XML.
func line(text string) string { return cut(text, longestTitle) }

// widthOf estimates the width of text in a sans-serif font: a few pixels too much rather than too little.
func widthOf(text string, size float64) float64 {
	width := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune("iljtfrI.,:;'|!()[] ", r):
			width += 0.34
		case strings.ContainsRune("mwMW@%…", r) || r > 0x2000:
			width += 1
		case r >= 'A' && r <= 'Z':
			width += 0.72
		default:
			width += 0.57
		}
	}
	return width * size
}

// fit truncates text to the given width.
func fit(text string, size, room float64) string {
	if widthOf(text, size) <= room {
		return text
	}
	runes := []rune(text)
	for n := len(runes) - 1; n > 0; n-- {
		if short := strings.TrimSpace(string(runes[:n])) + "…"; widthOf(short, size) <= room {
			return short
		}
	}
	return "…"
}

package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"unicode"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// entry is a legend entry: a name with its colour and stroke.
type entry struct {
	name  string
	style draw.LineStyle
}

// drawing is a plot with a title and a legend above it.
type drawing struct {
	title  string
	height vg.Length
	legend []entry
	plot   *plot.Plot
}

func (d drawing) svg() ([]byte, error) {
	canvas := vgsvg.New(width, d.height)
	all := draw.New(canvas)
	all.SetColor(ground)
	all.Fill(all.Rectangle.Path())
	inner := draw.Crop(all, margin, -margin, margin, -margin)
	if title := clean(d.title); title != "" {
		style := textStyle(titleSize, xfont.WeightBold)
		style.YAlign = text.YTop
		inner.FillText(style, vg.Point{X: inner.Min.X, Y: inner.Max.Y}, fit(style, title, inner.Size().X))
		inner.Max.Y -= titleSize + 10
	}
	inner.Max.Y -= d.drawLegend(inner)
	d.drawPlot(inner)
	return d.finish(canvas)
}

// drawPlot draws the plot, and the label of its X axis separately: on a logarithmic axis gonum misplaces the label far to the
// right, and reserves space there.
func (d drawing) drawPlot(c draw.Canvas) {
	label := d.plot.X.Label.Text
	d.plot.X.Label.Text = ""
	if label == "" {
		d.plot.Draw(c)
		return
	}
	style := textStyle(textSize, xfont.WeightNormal)
	style.XAlign = text.XCenter
	plotted := draw.Crop(c, 0, 0, textSize+9, 0)
	d.plot.Draw(plotted)
	data := d.plot.DataCanvas(plotted)
	c.FillText(style, vg.Point{X: data.Center().X, Y: c.Min.Y + 3}, fit(style, label, data.Size().X))
}

// drawLegend draws the legend along the top of c, in as many rows as needed, and returns their height.
func (d drawing) drawLegend(c draw.Canvas) vg.Length {
	const sample, gap, between, row = 26, 6, 20, 20
	style := textStyle(textSize, xfont.WeightNormal)
	style.YAlign = text.YCenter
	x, rows := c.Min.X, vg.Length(0)
	for _, e := range d.legend {
		name := fit(style, clean(e.name), c.Size().X/2)
		if name == "" {
			continue
		}
		needs := sample + gap + style.Width(name)
		if rows == 0 || x+needs > c.Max.X {
			x, rows = c.Min.X, rows+1
		}
		y := c.Max.Y - (rows-0.5)*row
		c.StrokeLine2(e.style, x, y, x+sample, y)
		c.FillText(style, vg.Point{X: x + sample + gap, Y: y}, name)
		x += needs + between
	}
	if rows == 0 {
		return 0
	}
	return rows*row + 8
}

// finish writes the document with its own opening tag: without a declaration, with a title, and with a scalable size.
func (d drawing) finish(canvas *vgsvg.Canvas) ([]byte, error) {
	var whole bytes.Buffer
	if _, err := canvas.WriteTo(&whole); err != nil {
		return nil, fmt.Errorf("plot: %w", err)
	}
	_, after, found := bytes.Cut(whole.Bytes(), []byte("<svg"))
	_, body, closed := bytes.Cut(after, []byte(">"))
	if !found || !closed {
		return nil, errors.New("plot: what was drawn is no SVG")
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f"`+
		` style="max-width:100%%;height:auto" role="img"><title>`, width, d.height.Points(), width, d.height.Points())
	if err := xml.EscapeText(&out, []byte(clean(d.title))); err != nil {
		return nil, fmt.Errorf("plot: %w", err)
	}
	out.WriteString("</title>")
	// Arial and Helvetica have the metrics of Liberation Sans, which measured the text.
	out.Write(bytes.ReplaceAll(body, []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
	return out.Bytes(), nil
}

// clean returns text on one line, without characters that are invalid in XML.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r == 0xfffe, r == 0xffff:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.TrimSpace(s)
}

// fit truncates s to the given width.
func fit(style text.Style, s string, room vg.Length) string {
	if style.Width(s) <= room {
		return s
	}
	runes := []rune(s)
	for n := len(runes) - 1; n > 0; n-- {
		if short := strings.TrimSpace(string(runes[:n])) + "…"; style.Width(short) <= room {
			return short
		}
	}
	return "…"
}

// newPlot returns an empty plot with axis labels.
func newPlot(l Labels) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.X.Label.Text, p.Y.Label.Text = clean(l.X), clean(l.Y)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.LineStyle = draw.LineStyle{Color: faint, Width: 1}
		axis.Tick.LineStyle = draw.LineStyle{Color: faint, Width: 1}
		axis.Tick.Length = 5
		axis.Padding = 0
		axis.Label.Padding = 6
		own := axis.Label.TextStyle
		own.Font, own.Color = textStyle(textSize, xfont.WeightNormal).Font, ink
		axis.Label.TextStyle = own
		own = axis.Tick.Label
		own.Font, own.Color = textStyle(tickSize, xfont.WeightNormal).Font, ink
		axis.Tick.Label = own
	}
	return p
}

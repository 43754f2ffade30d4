package chart

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

// entry is an entry of the legend.
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

// drawPlot draws the plot, and the label of its X axis separately: on a logarithmic axis gonum places the label far to the
// right and reserves space there.
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

// drawLegend draws the legend along the top of c, in as many rows as it needs, and returns their height.
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

// finish writes the document with its own start tag: without an XML declaration, with a title, and with a size that a page can
// shrink.
func (d drawing) finish(canvas *vgsvg.Canvas) ([]byte, error) {
	var whole bytes.Buffer
	if _, err := canvas.WriteTo(&whole); err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	_, after, found := bytes.Cut(whole.Bytes(), []byte("<svg"))
	_, body, closed := bytes.Cut(after, []byte(">"))
	if !found || !closed {
		return nil, errors.New("chart: the canvas wrote no SVG")
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f"`+
		` style="max-width:100%%;height:auto" role="img"><title>`, width, d.height.Points(), width, d.height.Points())
	if err := xml.EscapeText(&out, []byte(clean(d.title))); err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	out.WriteString("</title>")
	// The text was measured with Liberation Sans. Arial and Helvetica have the same widths.
	out.Write(bytes.ReplaceAll(body, []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
	return out.Bytes(), nil
}

// clean returns the text on one line, without characters that XML forbids.
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

// fit returns as much of s as fits into the given width.
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

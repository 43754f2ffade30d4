package console

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"remit/internal/chart"
	"remit/money"
)

// usd returns an amount as exact decimal text with at least two decimals: $1,234.50.
func usd(m money.MicroUSD) string { return chart.Dollars(int64(m)) }

// count returns a number with its digits in groups of three.
func count(n int64) string { return chart.Count.Text(n) }

// stamp is a time as pages show it. The script of the pages turns Short into the viewer's zone.
type stamp struct {
	Machine string `json:"at"`   // for the attribute datetime
	Full    string `json:"full"` // in UTC, for the title
	Short   string `json:"-"`    // in UTC
}

// stampOf returns nil for no time.
func stampOf(value any) *stamp {
	var t time.Time
	switch given := value.(type) {
	case time.Time:
		t = given
	case *time.Time:
		if given != nil {
			t = *given
		}
	}
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &stamp{t.Format("2006-01-02T15:04:05.000Z"), t.Format("2006-01-02 15:04:05.000 UTC"), t.Format("2006-01-02 15:04 UTC")}
}

// brief cuts a text that strangers chose, for lists.
func brief(text string) string {
	const most = 80 // characters
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}

// excerpt cuts a long text, such as a state of 64 KiB, for pages with many of them.
func excerpt(text string) string {
	if len(text) <= mostExcerpt {
		return text
	}
	return strings.ToValidUTF8(text[:mostExcerpt], "") + "…"
}

const mostExcerpt = 2000 // bytes

// head cuts JSON before it is indented for a list.
func head(text json.RawMessage) json.RawMessage {
	const most = 4000 // bytes
	return text[:min(len(text), most)]
}

// short returns the end of an id, which tells ids of one time apart.
func short(id string) string {
	if len(id) <= 12 {
		return id
	}
	return "…" + id[len(id)-12:]
}

// indented returns JSON for people, and {} for none.
func indented(text json.RawMessage) string {
	const most = 16 << 10 // bytes; indenting nested lists multiplies them
	var value any
	if len(text) == 0 {
		return "{}"
	}
	if len(text) > most {
		return string(text)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber() // no digit changes
	if decoder.Decode(&value) != nil {
		return string(text)
	}
	var pretty strings.Builder
	encoder := json.NewEncoder(&pretty)
	encoder.SetEscapeHTML(false) // the page escapes it
	encoder.SetIndent("", "  ")
	if encoder.Encode(value) != nil || pretty.Len() > 4*most {
		return string(text)
	}
	return strings.TrimSpace(pretty.String())
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

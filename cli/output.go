package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"remit/money"
)

// output is how a command prints what it got.
type output struct {
	JSON bool `name:"json" env:"-" help:"Print one JSON document, with the names of the API, instead of a table."`
}

// fact is a line of the table of one object.
type fact struct{ name, value string }

// show prints one object. Facts without a value are left out of its table.
func (o output) show(document any, facts []fact) error {
	if o.JSON {
		return writeJSON(os.Stdout, document)
	}
	var rows [][]string
	for _, f := range facts {
		if f.value != "" {
			rows = append(rows, []string{f.name, printable(f.value)})
		}
	}
	return writeTable(os.Stdout, rows)
}

// list prints a list once all of it has come, so that what is printed is whole.
func list[T any](o output, elements iter.Seq2[T, error], head string, row func(T) []string) error {
	all := []T{}
	for element, err := range elements {
		if err != nil {
			return err
		}
		all = append(all, element)
	}
	if o.JSON {
		return writeJSON(os.Stdout, all)
	}
	rows := [][]string{strings.Split(head, "\t")}
	for _, element := range all {
		cells := row(element)
		for i := range cells {
			cells[i] = printable(cells[i])
		}
		rows = append(rows, cells)
	}
	return writeTable(os.Stdout, rows)
}

// writeJSON writes a document in one line, with <, > and & as they are, and what would command the terminal escaped.
func writeJSON(to io.Writer, document any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return err
	}
	_, err := to.Write(escapeControls(text.Bytes()))
	return err
}

// escapeControls writes DEL, the controls from U+0080 to U+009F and what is no UTF-8 as \u, which JSON leaves as they are: to
// some terminals U+009B, or the byte 9B alone, is what ESC [ is. In JSON they stand in strings only.
func escapeControls(document []byte) []byte {
	var safe []byte
	for len(document) > 0 {
		r, size := utf8.DecodeRune(document)
		if 0x7f <= r && r <= 0x9f || r == utf8.RuneError && size == 1 {
			safe = fmt.Appendf(safe, `\u%04x`, r)
		} else {
			safe = append(safe, document[:size]...)
		}
		document = document[size:]
	}
	return safe
}

// shownOnce tells people that a credential was made. Scripts read standard output.
func shownOnce(what string) {
	fmt.Fprintf(os.Stderr, "remit: the %s is shown this once: keep it where nobody else reads it\n", what)
}

// printable is text that neither breaks a table nor commands the terminal, whoever wrote it.
func printable(text string) string {
	var safe strings.Builder
	for _, r := range text {
		if r == ' ' || unicode.IsPrint(r) {
			safe.WriteRune(r)
			continue
		}
		safe.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return safe.String()
}

// moment is a time in UTC, to the second; none is empty.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func usd(amount money.MicroUSD) string { return amount.String() + " USD" }

// metadata is a JSON object, as it was typed.
type metadata json.RawMessage

// UnmarshalText is called by the flag parser.
func (m *metadata) UnmarshalText(text []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return fmt.Errorf("must be a JSON object")
	}
	*m = metadata(text)
	return nil
}

// sent is the metadata for the SDK: nil if there is none.
func (m metadata) sent() any {
	if m == nil {
		return nil
	}
	return json.RawMessage(m)
}

// shownMetadata leaves out the empty object, which is every object's without metadata.
func shownMetadata(text json.RawMessage) string {
	if string(text) == "{}" {
		return ""
	}
	return string(text)
}

// unlessAll returns the status to filter by. The API spells all as no filter.
func unlessAll(status string) string {
	if status == "all" {
		return ""
	}
	return status
}

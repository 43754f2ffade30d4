package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"remit/money"
)

// Output is how a command prints its result: a table, or with --json one JSON document. Commands of other packages embed it too.
type Output struct {
	JSON bool `name:"json" env:"-" help:"Print one JSON document with the API's names instead of a table."`
}

// Fact is a row of the table of one object.
type Fact struct{ Name, Value string }

// Show prints one object. Its table omits facts without a value.
func (o Output) Show(document any, facts []Fact) error {
	if o.JSON {
		return writeJSON(os.Stdout, document)
	}
	var rows [][]string
	for _, f := range facts {
		if f.Value != "" {
			rows = append(rows, []string{f.Name, f.Value})
		}
	}
	return writeTable(os.Stdout, rows)
}

// List prints a list. Its table has a head and a row for each element.
func (o Output) List(documents any, head []string, rows [][]string) error {
	if o.JSON {
		return writeJSON(os.Stdout, documents)
	}
	return writeTable(os.Stdout, slices.Insert(rows, 0, head))
}

// list prints a list once it is complete, so that an error leaves no partial output.
func list[T any](o Output, elements iter.Seq2[T, error], head string, row func(T) []string) error {
	all, rows := []T{}, [][]string{}
	for element, err := range elements {
		if err != nil {
			return err
		}
		all, rows = append(all, element), append(rows, row(element))
	}
	return o.List(all, strings.Split(head, "\t"), rows)
}

// each returns elements that are all there, or the error instead of them, for list.
func each[T any](all []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, element := range all {
			if !yield(element, nil) {
				return
			}
		}
		if err != nil {
			yield(*new(T), err)
		}
	}
}

// writeJSON writes a document in one line. It does not escape <, > and &, but escapes control characters.
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

// escapeControls escapes DEL, U+0080 to U+009F and invalid UTF-8 as \u. JSON encoders leave them unescaped, but some terminals
// take U+009B or the byte 9B for ESC [. In JSON they occur only in strings.
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

// ShownOnce warns on standard error that a new credential is not shown again. Scripts read standard output.
func ShownOnce(what string) {
	fmt.Fprintf(os.Stderr, "remit: the %s is shown only once: store it securely\n", what)
}

// printable escapes the characters that would break a table or control the terminal.
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

// moment returns a time in UTC, to the second; the zero time is empty.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// momentOr is moment, with a word for none.
func momentOr(t *time.Time, none string) string {
	if t == nil || t.IsZero() {
		return none
	}
	return moment(*t)
}

// unlessZero returns a number; 0 is empty.
func unlessZero(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// dashed returns a cell of a table, which is never empty.
func dashed(text string) string { return cmp.Or(text, "-") }

func usd(amount money.MicroUSD) string { return amount.String() + " USD" }

// usdIfAny returns an amount; 0 and less are empty.
func usdIfAny(amount money.MicroUSD) string {
	if amount <= 0 {
		return ""
	}
	return usd(amount)
}

// orZero returns what a flag says; the zero value: it is not given.
func orZero[T any](given *T) (value T) {
	if given != nil {
		value = *given
	}
	return value
}

// metadata is a flag: a JSON object, as typed.
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

// sent returns the metadata for the SDK; nil for none.
func (m metadata) sent() any {
	if m == nil {
		return nil
	}
	return json.RawMessage(m)
}

// shownMetadata returns "" for the empty object, which means no metadata.
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

package cli

import "os"

// Output is how commands of other packages print, as those of this one do: a table, or with --json one JSON document.
type Output struct{ output }

// Show prints one object: the document, or the facts that have a value, each a name and a value.
func (o Output) Show(document any, facts ...[2]string) error {
	shown := make([]fact, len(facts))
	for i, f := range facts {
		shown[i] = fact{f[0], f[1]}
	}
	return o.show(document, shown)
}

// List prints a list: the documents, or a row for each below the head.
func (o Output) List(documents any, head []string, rows [][]string) error {
	if o.JSON {
		return writeJSON(os.Stdout, documents)
	}
	table := [][]string{head}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = printable(cell)
		}
		table = append(table, cells)
	}
	return writeTable(os.Stdout, table)
}

// ShownOnce tells people that a credential was made, of which no other copy exists.
func ShownOnce(what string) { shownOnce(what) }

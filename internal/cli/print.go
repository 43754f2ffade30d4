package cli

import "os"

// Output prints the results of commands in other packages as this package does: a table, or with --json one JSON document.
type Output struct{ output }

// Show prints one object: the document, or a table of the facts (name, value) that have a value.
func (o Output) Show(document any, facts ...[2]string) error {
	shown := make([]fact, len(facts))
	for i, f := range facts {
		shown[i] = fact{f[0], f[1]}
	}
	return o.show(document, shown)
}

// List prints a list: the documents, or a table with a head and a row for each.
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

// ShownOnce warns on standard error that a new credential is not shown again.
func ShownOnce(what string) { shownOnce(what) }

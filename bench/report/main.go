// Command report writes the tables and plots of docs/performance.md from one run of the benchmarks.
//
//	report machine            prints the head of a run's file: a description of the machine
//	report write RUN          writes the tables and plots from the run's file
//
// Every number comes from the run, and a missing one is an error. make report runs the benchmarks and both commands.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := do(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func do(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "machine":
		text, err := thisMachine()
		fmt.Print(text)
		return err
	case len(args) == 2 && args[0] == "write":
		return write(args[1], "docs")
	}
	return errors.New("usage: report machine | report write RUN")
}

// write updates docs/performance.md and docs/performance/*.svg.
func write(runFile, docs string) error {
	text, err := os.ReadFile(runFile)
	if err != nil {
		return err
	}
	r, err := parseRun(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", runFile, err)
	}
	page := filepath.Join(docs, "performance.md")
	before, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	after, err := fill(string(before), r)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	plots, err := draw(r)
	if err != nil {
		return err
	}
	for name, svg := range plots {
		if err := os.WriteFile(filepath.Join(docs, "performance", name), svg, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(page, []byte(after), 0o644)
}

package bench

import (
	"flag"
	"testing"
)

var long = flag.Bool("long", false, "also run the benchmarks that take long: memory, connections, growth, overload")

// onlyLong keeps a benchmark for runs that ask for it. It does the same work whatever b.N is: run it with -benchtime 1x.
func onlyLong(b *testing.B) {
	b.Helper()
	if !*long {
		b.Skip("takes long: run it with -long -benchtime 1x")
	}
}

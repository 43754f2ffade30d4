package bench

import (
	"flag"
	"testing"
)

var long = flag.Bool("long", false, "also run the benchmarks that take long: memory, connections, growth, overload, leases")

// onlyLong skips a benchmark without -long. Run it with -benchtime 1x, because its work does not depend on b.N.
func onlyLong(b *testing.B) {
	b.Helper()
	if !*long {
		b.Skip("takes long: run it with -long -benchtime 1x")
	}
}

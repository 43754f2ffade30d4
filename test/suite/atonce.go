package suite

import (
	"flag"
	"runtime"
	"strconv"
)

// RunAtOnce lets so many tests run at once for each processor, unless -parallel says how many. TestMain calls it first, in
// packages whose tests wait most of the time.
func RunAtOnce(forEachProcessor int) {
	flag.Parse()
	processors := runtime.GOMAXPROCS(0)
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(processors) {
		_ = flag.Set("test.parallel", strconv.Itoa(forEachProcessor*processors))
	}
}

package bench

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// merging is what the program counts about calls that it sends to Redis in one script.
type merging struct{ calls, scripts float64 }

// mergedSoFar reads the program's metrics.
func (s *service) mergedSoFar(tb testing.TB) (so merging) {
	tb.Helper()
	response, err := http.Get("http://" + s.addr + "/metrics")
	if err != nil {
		tb.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		tb.Fatalf("/metrics is answered with %s", response.Status)
	}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		for name, value := range map[string]*float64{"remit_redis_merged_calls_sum ": &so.calls, "remit_redis_merged_calls_count ": &so.scripts} {
			if text, found := strings.CutPrefix(lines.Text(), name); found {
				if *value, err = strconv.ParseFloat(text, 64); err != nil {
					tb.Fatal(fmt.Errorf("%s: %w", name, err))
				}
			}
		}
	}
	return so
}

// reportMerging reports how many calls one merged script contained, and what part of the operations was merged.
func (s *service) reportMerging(b *testing.B, before merging, operations int) {
	b.Helper()
	after := s.mergedSoFar(b)
	calls, scripts := after.calls-before.calls, after.scripts-before.scripts
	b.ReportMetric(calls/max(scripts, 1), "calls/merged-script")
	b.ReportMetric(100*calls/float64(operations), "merged-%")
}

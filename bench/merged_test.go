package bench

import (
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
	status, metrics := s.send(tb, http.MethodGet, "/metrics", "", "")
	if status != http.StatusOK {
		tb.Fatalf("/metrics is answered with %d", status)
	}
	for line := range strings.Lines(string(metrics)) {
		for name, value := range map[string]*float64{"remit_redis_merged_calls_sum ": &so.calls, "remit_redis_merged_calls_count ": &so.scripts} {
			if text, found := strings.CutPrefix(strings.TrimSpace(line), name); found {
				number, err := strconv.ParseFloat(text, 64)
				if err != nil {
					tb.Fatalf("%s: %v", name, err)
				}
				*value = number
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

package records

import (
	"testing"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

func TestAReportHasABoundedNumberOfLines(t *testing.T) {
	t.Parallel()
	lines, query := usageLines{}, UsageQuery{To: 1, Groups: []UsageGroup{BySession}}
	record := kernel.UsageRecord{Days: map[int]kernel.DayUsage{1: {All: kernel.UsedAmounts{Actions: 1, Value: 1}}}}
	for i := range 2 * MaxUsageLines {
		if err := lines.add(query, record, uuid.Nil, uuid.New()); err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
	}
	if err := lines.add(query, record, uuid.Nil, uuid.New()); err != ErrTooManyUsageLines {
		t.Errorf("one more: %v", err)
	}
}

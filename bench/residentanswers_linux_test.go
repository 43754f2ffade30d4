package bench

import (
	"testing"
	"time"
)

// TestResidentMemoryOfTheProgramIsRead keeps BenchmarkResident working.
func TestResidentMemoryOfTheProgramIsRead(t *testing.T) {
	if before, after := residentWith(t, 20); before <= 0 || after <= 0 {
		t.Errorf("%v MiB before and %v MiB with connections", before, after)
	}
}

// TestHeldLoadsAreMeasured runs BenchmarkHeld briefly. Its results mean nothing here.
func TestHeldLoadsAreMeasured(t *testing.T) {
	brief := heldLoad{idle: 20, slow: 5, active: 4, calls: 200, fleet: 20, crowd: 50, warmUp: 50 * time.Millisecond, span: 100 * time.Millisecond, rounds: 1}
	if got := besideIdleAndSlow(t, brief); got["rate-x-alone"] <= 0 {
		t.Errorf("%v", got)
	}
	if got := atTwiceTheRate(t, brief); got["goodput-x-peak"] <= 0 || got["p99-x-normal"] <= 0 || got["RSS-x-before"] <= 0 {
		t.Errorf("%v", got)
	}
}

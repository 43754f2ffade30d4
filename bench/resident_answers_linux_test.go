package bench

import "testing"

// TestResidentMemoryOfTheProgramIsRead keeps BenchmarkResident working.
func TestResidentMemoryOfTheProgramIsRead(t *testing.T) {
	if before, after := residentWith(t, 20); before <= 0 || after <= 0 {
		t.Errorf("%v MiB before and %v MiB with connections", before, after)
	}
}

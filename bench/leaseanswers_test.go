package bench

import (
	"context"
	"testing"
)

// TestLeasedChargesAreMeasured keeps BenchmarkLease working: the lease is charged, and the session with it.
func TestLeasedChargesAreMeasured(t *testing.T) {
	s := startProgram(t)
	lease := openLease(t, s)
	over := leased(s, lease)
	result, err := over.measure(1)
	if err != nil || result.operations != leasedPerOne || result.rate <= 0 {
		t.Errorf("%+v, %v", result, err)
	}
	if err := lease.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestPythonPrintsItsRateOfLeasedCharges(t *testing.T) {
	if rates, err := sdkRates(t, pythonLease(t), 0, 1); err != nil || len(rates) != 1 || rates[0] <= 0 {
		t.Errorf("%v, %v", rates, err)
	}
}

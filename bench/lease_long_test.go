//go:build long

package bench

import "testing"

func TestTypeScriptPrintsItsRateOfLeasedCharges(t *testing.T) {
	if rates, err := sdkRates(t, typeScriptLease(t), 0, 1); err != nil || len(rates) != 1 || rates[0] <= 0 {
		t.Errorf("%v, %v", rates, err)
	}
}

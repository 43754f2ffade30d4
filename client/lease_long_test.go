//go:build long

package client_test

import (
	"fmt"
	"testing"
)

// TestLeasesNeverGrantMoreThanIsBooked with more seeds.
func TestLeasesNeverGrantMoreThanIsBookedInManyRuns(t *testing.T) {
	t.Parallel()
	for seed := uint64(100); seed < 600; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			tryLeases(t, seed)
		})
	}
}

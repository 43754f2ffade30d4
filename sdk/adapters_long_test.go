//go:build long

package sdk

import (
	"testing"
	"time"

	"remit/test/serviceproc"
)

// Programs are killed amid their calls: what they held expires, and nothing else differs from the provider's ledger.
func TestKilledProgramsOfTheAdaptersLeaveExactBooks(t *testing.T) {
	buildAdapters(t)
	settings := []string{"REMIT_ADDR=" + serviceproc.Run(t).URL, startFakeProvider(t)}
	runNodeTests(t, adaptersDir, "*.long.js", 10*time.Minute, settings)
}

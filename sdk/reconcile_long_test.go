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

func TestFiveThousandMeteredCallsReconcileWithTheProvider(t *testing.T) {
	t.Parallel()
	reconcile(t, serviceproc.Run(t).URL, 5000, 50)
}

func TestFiveThousandCallsOfToolsReconcileWithWhatTheToolsCount(t *testing.T) {
	t.Parallel()
	reconcileTools(t, 5000, 50)
}

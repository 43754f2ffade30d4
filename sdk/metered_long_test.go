//go:build long

package sdk

import (
	"testing"

	"remit/test/serviceproc"
)

func TestFiveThousandMeteredCallsReconcileWithTheProvider(t *testing.T) {
	t.Parallel()
	reconcile(t, serviceproc.Run(t).URL, 5000, 50)
}

func TestFiveThousandCallsOfToolsReconcileWithWhatTheToolsCount(t *testing.T) {
	t.Parallel()
	reconcileTools(t, 5000, 50)
}

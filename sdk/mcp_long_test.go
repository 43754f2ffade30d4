//go:build long

package sdk

import "testing"

func TestFiveThousandCallsOfToolsReconcileWithWhatTheToolsCount(t *testing.T) {
	t.Parallel()
	reconcileTools(t, 5000, 50)
}

package openapi

import (
	"testing"

	"go.uber.org/goleak"
	"remit/test/serviceproc"
)

// TestMain removes the service that a test built, and fails if a goroutine outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(serviceproc.Tests{M: m}) }

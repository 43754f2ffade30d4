package openapi

import (
	"testing"

	"go.uber.org/goleak"
	"remit/internal/serviceproc"
)

// TestMain removes the service that a test has built, and fails when a goroutine is left once all has ended.
func TestMain(m *testing.M) { goleak.VerifyTestMain(serviceproc.Tests{M: m}) }

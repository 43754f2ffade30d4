package openapi

import (
	"testing"

	"go.uber.org/goleak"
	"remit/test/serviceproc"
	"remit/test/suite"
)

// TestMain removes the service that a test built, and fails if a goroutine outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(serviceproc.Tests{M: m}) }

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

var noError = suite.NoError

package webhook

import (
	"testing"

	"go.uber.org/goleak"
	"remit/test/suite"
)

func TestMain(m *testing.M) {
	suite.RunAtOnce(4)
	goleak.VerifyTestMain(m)
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

var eventually = suite.Eventually

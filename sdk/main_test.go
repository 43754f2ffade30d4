package sdk

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remit/test/serviceproc"
)

func TestMain(m *testing.M) {
	if os.Getenv(callerVariable) != "" {
		callUntilKilled()
		return
	}
	code := serviceproc.Tests{M: m}.Run()
	if left := ownGoroutinesLeft(); left != "" {
		fmt.Fprintln(os.Stderr, "goroutines of the SDK are left:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// ownGoroutinesLeft returns the stacks of the goroutines that the Go SDK's adapters have left behind; empty: none.
func ownGoroutinesLeft() string {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		err := goleak.Find()
		if err == nil || !strings.Contains(err.Error(), "remit/client/m") {
			return ""
		}
		if time.Now().After(deadline) {
			return err.Error()
		}
	}
}

package sdk

import (
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remit/test/fakeprovider"
	"remit/test/serviceproc"
	"remit/test/suite"
)

func TestMain(m *testing.M) {
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

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

var noError = suite.NoError

// startFakeProvider starts a provider of language models for the tests of an SDK. It returns the setting that tells them where
// it is: REMIT_FAKE_PROVIDER=URL. They read its ledger at URL/ledger.
func startFakeProvider(t *testing.T) (setting string) {
	t.Helper()
	server := httptest.NewServer(new(fakeprovider.Provider))
	t.Cleanup(server.Close)
	return "REMIT_FAKE_PROVIDER=" + server.URL
}

package sdk

import (
	"net/http/httptest"
	"testing"

	"remit/test/fakeprovider"
)

// startFakeProvider starts a provider of language models for the tests of an SDK. It returns the setting that tells them where
// it is: REMIT_FAKE_PROVIDER=URL. They read its ledger at URL/ledger.
func startFakeProvider(t *testing.T) (setting string) {
	t.Helper()
	server := httptest.NewServer(new(fakeprovider.Provider))
	t.Cleanup(server.Close)
	return "REMIT_FAKE_PROVIDER=" + server.URL
}

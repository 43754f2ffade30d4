//go:build long

package docs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Where the service does not start, the page's first block says why and ends.
func TestTheTutorialSaysWhyTheServiceDoesNotStart(t *testing.T) {
	t.Parallel()
	first, _, _ := strings.Cut(blocksOf(t, "docs/tutorial.md"), "field()")
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	address := taken.Listener.Addr().String()
	wantPrinted(t, pasteAt(t, "bash", address, first), "remit: cannot listen on "+address)
}

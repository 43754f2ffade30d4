//go:build long

package clients

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"remit/test/tool"
)

var goClients = append(packages("openai", "openai-go, chat", "openai-go, responses"), packages("anthropic", "anthropic-sdk-go")...)

// The packages take minutes to compile, the first time.
func TestClientsInGoAreBoundedUnchanged(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "clients")
	for _, args := range [][]string{{"mod", "tidy", "-diff"}, {"build", "-o", binary, "."}, {"vet", "."}} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		output, err := tool.Command(ctx, "go", "go", args...).CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", args[0], err, tool.Indented(output))
		}
	}
	makeCalls(t, goClients, ".", binary)
}

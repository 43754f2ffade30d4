package sdk

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// npm and setuptools pack the licence that lies beside the manifest, and no other.
func TestThePackagesHaveTheLicense(t *testing.T) {
	t.Parallel()
	license, err := os.ReadFile(filepath.Join("..", "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{typeScriptDir, adaptersDir, "python"} {
		if packed, err := os.ReadFile(filepath.Join(dir, "LICENSE")); err != nil || !bytes.Equal(packed, license) {
			t.Errorf("%s has another licence: %v", dir, err)
		}
	}
}

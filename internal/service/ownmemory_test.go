package service

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOwnRedisServerGetsHalfOfTheMemory(t *testing.T) {
	t.Parallel()
	const missing = "-"
	for name, test := range map[string]struct {
		meminfo, limit string
		want           uint64
	}{
		"a machine":                    {"MemFree: 1 kB\nMemTotal:  8388608 kB\n", missing, 4 << 30},
		"a container without a limit":  {"MemTotal: 8388608 kB\n", "max\n", 4 << 30},
		"a container":                  {"MemTotal: 8388608 kB\n", "1073741824\n", 512 << 20},
		"a limit above what there is":  {"MemTotal: 2097152 kB\n", "8589934592\n", 1 << 30},
		"hardly any":                   {"MemTotal: 2097152 kB\n", "1048576\n", 64 << 20},
		"no limit, of an unknown size": {missing, missing, 1 << 30},
		"nonsense":                     {"MemTotal: much kB\n", "much\n", 1 << 30},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"meminfo": test.meminfo, "limit": test.limit} {
			if text != missing {
				must(0, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))(t)
			}
		}
		if got := maxMemoryOf(availableMemory(filepath.Join(dir, "meminfo"), filepath.Join(dir, "limit"))); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
